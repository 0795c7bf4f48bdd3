/*
 * sink - where the answer of a command goes: standard output, a file, or another program.
 */
#ifndef LULL_CMD_SINK_H
#define LULL_CMD_SINK_H

#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"

struct lull_sink {
	FILE *to;
	const char *target; /* for messages; borrowed */
	pid_t pid;	    /* of the program that reads it, 0 if none */
	void (*old_handler)(int);
};

/*
 * "-" is standard output, "@PROGRAM ARGS" a program that reads it (words are split at blanks, no
 * shell), anything else a file, which is not replaced unless `is_forced`.
 */
int lull_sink_open(struct lull_sink *sink, const char *target, bool is_forced,
		   struct lull_err *err);

/*
 * Refuse to write to `target` if it is a report: for files that are replaced without asking, such
 * as those that CI writes again and again. Accepts NULL.
 */
int lull_sink_spare_report(const char *target, struct lull_err *err);

/* Refuse to write to `target` if it is the file `input`, which is read. Accepts NULL. */
int lull_sink_spare_input(const char *target, const char *input, struct lull_err *err);

/* Flush and close; fails if something could not be written or the program failed. */
int lull_sink_close(struct lull_sink *sink, struct lull_err *err);

#endif
