/*
 * err - how a function says what went wrong.
 *
 * What it gives:  a code for the caller and one sentence for the user, on the caller's stack.
 * Rule:           a function that can fail returns 0 or a negative lull_code and takes `err` last;
 *                 on success *err is untouched, so calls chain with ||.
 * Ownership:      nothing to free.
 */
#ifndef LULL_BASE_ERR_H
#define LULL_BASE_ERR_H

#include <stdio.h>

#include "base/types.h"

enum lull_code {
	LULL_OK = 0,
	LULL_E_USAGE = -1,	 /* the command line is wrong */
	LULL_E_IO = -2,		 /* the system refused: open, read, write, fork, ... */
	LULL_E_FORMAT = -3,	 /* the input is damaged or not ours */
	LULL_E_NOMEM = -4,	 /* no memory */
	LULL_E_UNSUPPORTED = -5, /* this machine or version cannot do it */
	LULL_E_NOT_FOUND = -6,	 /* what was named does not exist */
};

struct lull_err {
	enum lull_code code;
	char msg[512];
};

/* Fill *err with the sentence and return `code`. */
int lull_fail(struct lull_err *err, enum lull_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Like lull_fail() with LULL_E_IO, and ": " plus the text of errno appended. */
int lull_fail_errno(struct lull_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Write out what the stream still holds; LULL_E_IO if that, or a write before, failed. `what` is
 * what is written, such as "standard output".
 */
int lull_err_flush(struct lull_err *err, FILE *to, const char *what);

/*
 * `path` could not be created, as errno says: if its folder is missing, name that and the command
 * that makes it. LULL_E_IO.
 */
int lull_fail_creating(struct lull_err *err, const char *path);

/* Put context and ": " in front of the sentence in *err; returns err->code. */
int lull_err_wrap(struct lull_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
