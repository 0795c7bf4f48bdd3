/*
 * try - put remedies into a program, run it with and without them, and say what they bring.
 *
 *	struct lull_try t;
 *	lull_try_init(&t, &options);
 *	rc = lull_try_run(&t, err);
 *	t.entries				(what was tried, the best first)
 *	t.best					(index of the best, or -1: nothing gains)
 *	lull_try_release(&t);
 *
 * What it does:  one run of the program as it is, and if it marks no steps, a search for its loop
 *                (try_loop.c); a choice of remedies, from `lull why` on a short
 *                recording (try_choose.c); all of them by turns (contest.h); then the good ones
 *                together, as long as that gains.
 * Correctness:   losses of the first steps are compared with those of the program as it is. A
 *                remedy that changes them by more than it promises is out, however fast it is.
 * Stopping:      SIGINT and SIGTERM end the present run; what was measured is kept.
 * The user's:    nothing is written outside of a scratch folder, which is removed at the end; files
 *                that the program saves through PyTorch go there, too.
 */
#ifndef LULL_TRY_TRY_H
#define LULL_TRY_TRY_H

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "try/contest.h"
#include "try/remedy.h"
#include "try/trial.h"

/* Measured in each run, unless the user gives a number. */
#define LULL_TRY_STEPS 40

struct lull_try_options {
	char **argv;
	struct lull_vec only;  /* char *: names of remedies; those are tried */
	struct lull_vec files; /* char *: remedies of the user's */
	struct lull_vec env;   /* char *: A=B, a remedy each */
	bool has_all;	       /* all remedies that need not be named */
	bool is_dry;	       /* choose, but try nothing */
	bool is_quiet;	       /* no progress */
	const char *client;    /* a command that asks the program, a server; NULL: it is none */
	bool is_whole;	       /* compare whole runs, not steps */
	bool is_fresh;	       /* no run is forked from another */
	u64 n_steps, n_warmup, n_runs;
	bool is_timed;	  /* fewer than n_steps where they take long */
	u64 budget_ns;	  /* 0: no limit */
	f64 limit_s;	  /* without a sign of life */
	const char *keep; /* folder for recordings of the program and of the best; NULL: none */
};

/* What came of a candidate. */
enum lull_try_end {
	LULL_TRY_MEASURED,    /* see its gain */
	LULL_TRY_NOTHING,     /* the remedy found nothing to change */
	LULL_TRY_DIFFERS,     /* losses differ by more than it may */
	LULL_TRY_FAILED,      /* the program failed with it */
	LULL_TRY_HUNG,	      /* it did not end */
	LULL_TRY_NOT_REACHED, /* the time was over before */
};

struct lull_try_entry {
	const struct lull_remedy **remedies;
	size_t n;
	struct lull_str name; /* of all, with " + " between them */
	f64 predicted;	      /* by lull why, times as fast; 0: nothing */
	f64 promise;	      /* the same, or where lull why cannot tell: if its causes were gone */
	bool is_apt;	      /* it was asked, and would change something */
	size_t place;	      /* of what lull why found, among the causes of its first remedy */
	enum lull_try_end end;
	struct lull_str why;   /* of ends other than MEASURED: a phrase */
	struct lull_gain gain; /* over the program as it is */
	f64 step_ns;	       /* median of its runs */
	f64 p99_ns;	       /* of requests, where there is a client */
	u32 n_runs;
	bool has_values, is_equal; /* losses: some were compared; all are equal to the bit */
	f64 difference;		   /* of losses, the largest, as a share */
	struct lull_vec values;	   /* f64: numbers of its output, of the last run */
	u64 ready_ns;		   /* of its first run: until measuring starts */
	u64 device_bytes, rss_bytes;
	struct lull_trial last; /* its last run: places and patch */
	bool has_last;
};

struct lull_try {
	const struct lull_try_options *options;
	struct lull_vec remedies; /* struct lull_remedy */
	struct lull_vec entries; /* struct lull_try_entry, in the order in which they were chosen */
	int best;		 /* index of the best, or -1 */
	struct lull_try_entry base;
	f64 fastest;	/* run of the program as it is, ns a step; 0: none */
	f64 noise;	/* of runs of the program as it is: standard deviation over mean */
	f64 drift;	/* of its losses from run to run, the largest, as a share */
	u64 n_measured; /* steps of a run */
	u64 spent_ns;
	u32 n_trials;
	u32 n_forked; /* that needed no import of PyTorch */
	bool is_stopped, is_over_budget;
	struct lull_str chosen_by; /* how remedies were chosen, as a sentence */
	struct lull_str steps_by;  /* what a step is where the program marks none, as a sentence */
	/* Private. */
	struct lull_vec values; /* f64: losses of the first run of the program as it is */
	struct lull_vec firm;	/* u32: for each, runs in which it was the same; 0 if it differed */
	struct lull_str recorded; /* a recording that exists already: of a server, or of a loop */
	struct lull_str count;	  /* what is counted; how.count */
	u64 ran_ns;		  /* a run without steps: until its end, or until it was cut */
	bool is_unmarked, is_cut; /* its steps are found; that run was cut */
	struct lull_str folder, agent, python, mend;
	struct lull_trial_how how;
	struct lull_warms warms;
	u64 began_ns;
};

/* Nothing tried yet; borrows the options. */
void lull_try_init(struct lull_try *t, const struct lull_try_options *options);

/*
 * Try. LULL_E_USAGE for a remedy that does not exist, LULL_E_UNSUPPORTED for a program without
 * steps or a budget that is too short, LULL_E_NOT_FOUND if the program does not exist, LULL_E_IO if
 * it fails by itself.
 */
int lull_try_run(struct lull_try *t, struct lull_err *err);

/*
 * Record the program as it is and with the best, into a new folder options->keep. After
 * lull_try_run().
 */
int lull_try_keep(struct lull_try *t, struct lull_err *err);

/* Free it, and remove the scratch folder. */
void lull_try_release(struct lull_try *t);

/* The answer as text, for `width` columns. */
void lull_try_text(const struct lull_try *t, FILE *to, int width);

/* As one JSON object. */
void lull_try_json(const struct lull_try *t, FILE *to);

/* As Markdown, for a pull request. */
void lull_try_markdown(const struct lull_try *t, FILE *to);

/* The best entry, or NULL. */
const struct lull_try_entry *lull_try_best(const struct lull_try *t);

/* Add what a person reads about the losses of an entry: "same losses", "losses within 1e-6", ... */
void lull_try_say_losses(const struct lull_try_entry *e, struct lull_str *to);

/*
 * "gain", "none", "slower", "unsure", "nothing to change", "differs", "failed", "hung", "not
 * tried".
 */
const char *lull_try_verdict(const struct lull_try_entry *e);

#endif
