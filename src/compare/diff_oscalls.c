/*
 * oscalls: calls into the C library that took long, by function.
 */
#include "compare/diff.h"

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	lull_diff_count_table(to, r, LULL_TABLE_oscall, "name", (enum lull_table)0);
}

const struct lull_diff_kind lull_diff_oscalls = {
	.name = "oscalls",
	.title = "OS calls",
	.is_of_host = true,
	.collect = collect,
};
