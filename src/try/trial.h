/*
 * trial - run the program once, unrecorded, with or without remedies, and see how long its steps
 * take.
 *
 * The program gets our Python package in front of PYTHONPATH, and for lull.h the agent without a
 * session; both only write when steps start. It ends itself after its steps; a program in C is sent
 * SIGTERM then. It has a process group of its own, of which nothing is left afterwards. Its output
 * goes to files in the folder of the run.
 */
#ifndef LULL_TRY_TRIAL_H
#define LULL_TRY_TRIAL_H

#include <signal.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "try/remedy.h"
#include "try/try_log.h"
#include "try/warm.h"

enum lull_trial_end {
	LULL_TRIAL_DONE,      /* steps were measured */
	LULL_TRIAL_FEW_STEPS, /* it ended before enough of them */
	LULL_TRIAL_FAILED,    /* it ended with an error */
	LULL_TRIAL_HUNG,      /* it took too long, and was ended */
	LULL_TRIAL_STOPPED,   /* the user wanted no more, or the budget is spent */
};

/* The program, and how it is run each time. */
struct lull_trial_how {
	char **argv;
	const char *folder; /* of all runs */
	const char *python; /* our package */
	const char *agent;  /* preloaded; NULL: the program is Python */
	const char *mend;   /* liblull-mend.so, for remedies that name a change, and for `count` */
	const char *count; /* what makes a step, as LULL_TRY_COUNT (mend/count.c); NULL: marks do */
	const char *asks;  /* files that a recording asks, with ":" between them; NULL: none */
	struct lull_warms *warms;
	u64 n_warmup, n_steps, n_block;
	u64 most_ms;   /* of measured steps, where the number of them may be less; 0: it is given */
	bool is_long;  /* steps take long, so that remedies get no more of them for warm-up */
	bool by_calls; /* of the model: they are the steps */
	bool is_whole; /* the whole run is what is measured, until the program ends by itself */
	bool has_start;	   /* and its start counts; else from where PyTorch is loaded */
	bool may_be_whole; /* it is if the program has no steps; see lull_trial.is_whole */
	f64 limit_s;	   /* without a sign of life */
	f64 unmarked_s;	   /* a run without a step for so long is cut: it marks none; 0: never */
	f64 most_s;	   /* of a whole run; 0: no limit */
	u64 until_ns;	   /* a run that lasts longer is ended: the budget is spent; 0: never */
	volatile sig_atomic_t *is_stopped;
};

struct lull_trial {
	enum lull_trial_end end;
	struct lull_try_seen seen;
	int status;	 /* exit status as a shell has it */
	u64 wall_ns;	 /* all of it */
	u64 once_ns;	 /* of that: imports that other runs need not repeat (warm.h) */
	u64 ready_ns;	 /* from its start to the first measured step */
	u64 rss_bytes;	 /* peak of its largest process */
	bool has_output; /* its values are numbers that it wrote to standard output */
	bool is_whole;	 /* it has no steps, so all of it after its start was measured */
	bool is_cut;	 /* it has marked no step for unmarked_s, and was ended */
	bool is_forked;	 /* from a process that had its imports (warm.h) */
	char words[320]; /* the last line it wrote to standard error; "" if none */
};

/* A change of the program: some remedies together. */
struct lull_trial_change {
	const struct lull_remedy *const *remedies;
	size_t n;
};

/*
 * Run it; `number` names the folder of the run. LULL_E_NOT_FOUND or LULL_E_IO if the program cannot
 * be started. Release the trial in any case.
 */
int lull_trial_run(struct lull_trial *t, const struct lull_trial_how *how,
		   const struct lull_trial_change *change, u32 number, struct lull_err *err);

/* Where the run has no losses, take the numbers that it wrote to `stdout` of its folder instead. */
void lull_trial_read_output(struct lull_trial *t, const char *folder);

/* Whether each remedy found something to change; one that sets variables alone always does. */
bool lull_trial_did(const struct lull_trial *t, const struct lull_trial_change *change);

/* Free it. */
void lull_trial_release(struct lull_trial *t);

#endif
