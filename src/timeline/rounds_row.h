/*
 * rounds_row - the row of the rounds (steps) that `lull why` looks at.
 *
 * The program may have marked other steps, or none: the row shows those that the answer is about.
 * It is made empty, so that rows keep their numbers when the analysis of a large report ends later.
 */
#ifndef LULL_TIMELINE_ROUNDS_ROW_H
#define LULL_TIMELINE_ROUNDS_ROW_H

#include "timeline/timeline.h"

#define LULL_ROUNDS_KEY "rounds"

struct lull_tl_round {
	u64 number;
	struct lull_span span;
};

/* Add the row, the last one, without rounds; once for each timeline. */
void lull_rounds_row_add(struct lull_timeline *t);

/* Fill it; rounds are by time. Those that overlap have no place on one line: none is shown then. */
void lull_rounds_row_set(struct lull_timeline *t, const struct lull_tl_round *rounds, size_t n);

#endif
