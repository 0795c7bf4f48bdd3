/*
 * row_sort - bring the rows of one block into lane order.
 *
 * Events of one lane arrive almost in order, lanes arrive mixed, and a range arrives when it ends,
 * so after its children. A counting sort by lane keeps the arrival order inside each lane; an
 * insertion sort then needs about two moves a row. Input in no order at all is bounded: after 8
 * moves a row a lane is given to a natural merge of its ascending runs.
 *
 * Cost:           6 to 8 ns a row for what programs produce.
 */
#ifndef LULL_TRACE_ROW_SORT_H
#define LULL_TRACE_ROW_SORT_H

#include "base/types.h"

struct lull_sort_key {
	u64 start_ns;
	u64 dur_ns;
	u32 lane;
	u32 row; /* where the row is; not compared */
};

/*
 * Sort by lane, then start ascending, then duration descending (parents before children), stable.
 * `spare` holds n keys too; the result is in one of the two arrays, which is returned. n is at most
 * 65,536.
 */
const struct lull_sort_key *lull_sort_keys(struct lull_sort_key *keys, struct lull_sort_key *spare,
					   size_t n);

#endif
