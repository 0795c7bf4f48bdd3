/*
 * ask - the commands that send one request to a running session.
 */
#ifndef LULL_CMD_ASK_H
#define LULL_CMD_ASK_H

#include "base/err.h"
#include "base/str.h"
#include "text/opt.h"

#define OPT_SESSION(ptr)                   \
	OPT_STR(0, "session", "NAME", ptr, \
		"the session (default: the only one; lull sessions lists them)")

/* The request, and what its answer means. */
struct lull_ask {
	const char *request;
	const char *arg;    /* NULL: none */
	const char *before; /* what to print before the answer; NULL: nothing */
};

/*
 * Append which session the only one is, " (session NAME: PROGRAM, process PID)"; nothing if the
 * user chose one. Asked first: afterwards it may be gone.
 */
void lull_ask_who(const char *session, struct lull_str *who);

/*
 * Send it to the session (NULL: the only one, which is named) and print the answer on stderr.
 */
int lull_ask(const char *session, const struct lull_ask *ask, struct lull_err *err);

/* LULL_E_USAGE if words follow the options. */
int lull_ask_no_words(int first, int argc, char **argv, struct lull_err *err);

#endif
