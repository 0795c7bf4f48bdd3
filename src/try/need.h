/*
 * need - what has to be in a recording, so that a remedy can change anything there.
 *
 * A remedy names what it needs in a line of its head (remedy.h). To add a word: a function and a
 * line of the table in need.c.
 */
#ifndef LULL_TRY_NEED_H
#define LULL_TRY_NEED_H

#include "base/types.h"

struct lull_why; /* cause/why.h */

struct lull_need {
	const char *name;
	const char *lacks; /* what is said where it is not there: a phrase */
	bool (*has)(const struct lull_why *why);
};

/* The need of this name, or NULL. */
const struct lull_need *lull_need_find(const char *name);

#endif
