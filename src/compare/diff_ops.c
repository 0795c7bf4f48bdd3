/*
 * ops: operators of the framework, by name.
 */
#include "compare/diff.h"

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	lull_diff_count_table(to, r, LULL_TABLE_op, "label", LULL_TABLE_op_label);
}

const struct lull_diff_kind lull_diff_ops = {
	.name = "ops",
	.title = "Operators",
	.is_of_host = true,
	.collect = collect,
};
