/*
 * log - messages of a command about its answer, on standard error.
 *
 * Define LOG_TAG before including this header, then log_warn("3 blocks damaged: their rows are
 * absent").
 *
 *	warn	always: the answer may be incomplete, here is why
 *	info	with -v: what happened, once per phase
 *	debug	with -vv, or LULL_DEBUG=tag[,tag...]: per file or block, never per row
 *	trace	compiled in with -DLULL_LOG_TRACE_ON only
 *
 * Errors are not logged: they are returned, and main() prints them once.
 * Lines:    "lull: warning: text", "lull: trace/reader: text" for debug.
 * Threads:  any; one write per line. The level is set before threads start.
 */
#ifndef LULL_BASE_LOG_H
#define LULL_BASE_LOG_H

#include "base/err.h"
#include "base/types.h"

enum lull_log_level {
	LULL_LOG_WARN,
	LULL_LOG_INFO,
	LULL_LOG_DEBUG,
	LULL_LOG_TRACE,
};

/*
 * Use through the log_ macros. Prints one line if the level, or the tag's debugging, is switched
 * on.
 */
void lull_log(enum lull_log_level level, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Print everything up to this level, and debug lines of the tags in the comma list (may be NULL;
 * borrowed).
 */
void lull_log_init(enum lull_log_level level, const char *debug_tags);

/*
 * Hand warnings to this function, without "lull: warning:", instead of printing them. NULL: print
 * them, as in the beginning.
 */
void lull_log_divert(void (*to)(const char *warning));

/* Raise the level by one: the callback of -v. The parameters are not used. */
int lull_log_louder(void *ctx, const char *value, struct lull_err *err);

/* The line of an option table (text/opt.h) that gives a command its -v. */
#define LULL_OPT_VERBOSE()                                    \
	OPT_CALL('v', "verbose", NULL, lull_log_louder, NULL, \
		 "print more on standard error; -vv for debugging")

#define log_warn(...)  lull_log(LULL_LOG_WARN, LOG_TAG, __VA_ARGS__)
#define log_info(...)  lull_log(LULL_LOG_INFO, LOG_TAG, __VA_ARGS__)
#define log_debug(...) lull_log(LULL_LOG_DEBUG, LOG_TAG, __VA_ARGS__)
#ifdef LULL_LOG_TRACE_ON
#define log_trace(...) lull_log(LULL_LOG_TRACE, LOG_TAG, __VA_ARGS__)
#else
#define log_trace(...) ((void)0)
#endif

#endif
