/*
 * calls: CUDA calls, by function.
 */
#include "compare/diff.h"

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	lull_diff_count_table(to, r, LULL_TABLE_cuda_call, "name", (enum lull_table)0);
}

const struct lull_diff_kind lull_diff_calls = {
	.name = "calls",
	.title = "CUDA calls",
	.is_of_host = true,
	.collect = collect,
};
