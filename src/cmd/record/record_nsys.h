/*
 * record_nsys - words of nsys scripts that `lull profile` and `lull launch` take although they mean
 * little here, so that a line that people have used for years records at its first try.
 *
 * An option without effect gives one line that says so and why, unless it asks for what lull does
 * anyway. One that cannot be left out without harm is refused with what to do instead.
 */
#ifndef LULL_CMD_RECORD_RECORD_NSYS_H
#define LULL_CMD_RECORD_RECORD_NSYS_H

#include "base/err.h"
#include "text/opt.h"
#include "base/str.h"

/* Room that lull_nsys_opts() needs. */
#define LULL_NSYS_OPTS 40

/* The words of the command line. Begin with zeros and lull_nsys_opts(). */
struct lull_nsys_words {
	const char *texts[LULL_NSYS_OPTS];
	bool flags[LULL_NSYS_OPTS];
	struct lull_str words;	 /* those of --trace that mean nothing, with commas between them */
	struct lull_str notices; /* lines to show before the program starts */
};

/* Fill `opts` with the options, which --help does not list; returns how many. */
size_t lull_nsys_opts(struct lull_nsys_words *n, struct lull_opt *opts);

/* Refuse what cannot be left out; the notices get the rest that was asked for and means nothing. */
int lull_nsys_check(struct lull_nsys_words *n, struct lull_err *err);

/*
 * Whether --trace of nsys knows a word that ours does not; *sources then gets what the word
 * switches on besides. Comes before lull_nsys_check(), which says that it is not recorded.
 */
bool lull_nsys_trace_word(struct lull_nsys_words *n, const char *word, u32 *sources);

/* Add a line to the notices. */
void lull_nsys_notice(struct lull_nsys_words *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Free what was gathered. */
void lull_nsys_release(struct lull_nsys_words *n);

#endif
