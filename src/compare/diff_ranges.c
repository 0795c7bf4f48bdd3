/*
 * ranges: NVTX and lull.h ranges, by name.
 */
#include "compare/diff.h"

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	lull_diff_count_table(to, r, LULL_TABLE_range, "label", LULL_TABLE_label);
}

const struct lull_diff_kind lull_diff_ranges = {
	.name = "ranges",
	.title = "Ranges",
	.collect = collect,
};
