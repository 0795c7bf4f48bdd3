/*
 * strip - a stretch of time as one line of characters.
 *
 *	struct lull_strip strip;
 *	lull_strip_init(&strip, 0, 1000, 60);
 *	lull_strip_add(&strip, 100, 250);
 *	lull_strip_blocks(&text, &strip, is_ascii);
 *	lull_strip_release(&strip);
 *
 * A cell holds how much of its time was covered: 0 is none, 1 all of it, and more where things
 * overlap.
 */
#ifndef LULL_TEXT_STRIP_H
#define LULL_TEXT_STRIP_H

#include "base/str.h"
#include "base/types.h"

struct lull_strip {
	u64 from_ns, to_ns;
	size_t n;   /* cells */
	f64 *cells; /* how much of each is covered */
	f64 sum_ns; /* all that was added inside of the stretch */
};

/* An empty strip of so many cells; to_ns is after from_ns. */
void lull_strip_init(struct lull_strip *s, u64 from_ns, u64 to_ns, size_t n);

/* Free it. */
void lull_strip_release(struct lull_strip *s);

/* Cover [from_ns, to_ns); what lies outside of the strip does not count. */
void lull_strip_add(struct lull_strip *s, u64 from_ns, u64 to_ns);

/* The cell at this time, or n if it is outside. */
size_t lull_strip_cell(const struct lull_strip *s, u64 at_ns);

/* Append a character for each cell, as high as it is covered: eighths of a block, or " .:-=+*#". */
void lull_strip_blocks(struct lull_str *to, const struct lull_strip *s, bool is_ascii);

/* Append a ruler of n characters: "|0        |2        |4 ms". */
void lull_strip_ruler(struct lull_str *to, u64 dur_ns, size_t n);

#endif
