/*
 * nearest - which known name did the user mean?
 *
 *	struct lull_nearest near = { .word = "ouput" };
 *	lull_nearest_add(&near, "output");	(for every known name)
 *	near.best				("output", or NULL when nothing is close)
 *
 * Close means at most one edit per three letters, so that short names do not match everything.
 */
#ifndef LULL_TEXT_NEAREST_H
#define LULL_TEXT_NEAREST_H

#include "base/types.h"

struct lull_nearest {
	const char *word; /* what was written; set by the caller, borrowed */
	const char *best; /* closest name so far, borrowed from lull_nearest_add(); NULL at first */
	size_t best_distance; /* edits between word and best */
};

/* Consider one more known name. Names longer than 63 bytes are never close. */
void lull_nearest_add(struct lull_nearest *near, const char *name);

#endif
