/*
 * try_log - what the processes of one run wrote about their steps.
 *
 * Each process has a file PID.log in the folder of the run; python/lull/_try.py says what a line
 * means, and agent/core/step_log.c writes the same for programs in C. Files may end anywhere, and
 * lines that make no sense are skipped: a program may have crashed.
 */
#ifndef LULL_TRY_TRY_LOG_H
#define LULL_TRY_TRY_LOG_H

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

/* Where the program would be changed. */
struct lull_try_place {
	char *remedy, *file, *text;
	u64 line;
};

struct lull_try_seen {
	u64 n_steps;		/* before measuring */
	u64 began_ns;		/* measuring, on CLOCK_MONOTONIC; 0: it did not */
	u64 loaded_ns;		/* PyTorch; 0: it was not */
	u64 over_ns;		/* a program that was not measured has ended; 0: not so */
	u64 n_measured;		/* steps */
	u64 n_calls;		/* of the model, where there are no steps */
	struct lull_vec steps;	/* f64: ns a step, one for each block */
	struct lull_vec values; /* f64: losses, or sums of outputs */
	bool has_loss;
	bool is_python;
	bool has_ended; /* all steps are measured */
	u64 device_bytes;
	u64 rank, pid;
	u64 n_bytes; /* of all logs: more than before means progress */
	/* Of all processes: */
	struct lull_vec did;	 /* char *: remedies that changed something */
	struct lull_vec could;	 /* char *: that would, where they are only asked */
	bool is_asked;		 /* the program got far enough for those to be all */
	struct lull_vec notes;	 /* char *: what remedies say about their effect */
	struct lull_vec places;	 /* struct lull_try_place */
	struct lull_vec kept;	 /* char *: files that were saved elsewhere */
	struct lull_vec trouble; /* char * */
	struct lull_str patch;
	struct lull_str not_forked; /* why; "" if it was, or was not asked to */
	struct lull_str imports;    /* modules that runs could share, with blanks between them */
};

/* Nothing seen. */
void lull_try_seen_init(struct lull_try_seen *s);

/* Free it. */
void lull_try_seen_release(struct lull_try_seen *s);

/*
 * Read all logs of the folder into `s`, which is empty. Steps and losses are those of one process:
 * the one with most measured steps; of several one that ran to the end of the program, then the
 * lowest rank, then the first that was started.
 */
void lull_try_log_read(struct lull_try_seen *s, const char *folder);

#endif
