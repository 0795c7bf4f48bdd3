/*
 * osrt_sum: time in calls of the C library by function.
 */
#include "report/by_column.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Num Calls"),
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_by_column by = { r, options, LULL_TABLE_oscall, "name" };

	(void)err;
	lull_by_column_put(&by, out, lull_by_column_put_string);
	return LULL_OK;
}

const struct lull_report lull_report_osrt_sum = {
	.name = "osrt_sum",
	.old_name = "osrtsum",
	.display = "OS Runtime Summary",
	.summary = "time in C library calls by function",
	.help = "How long threads were inside C library calls that may block, by function. Only "
		"calls longer than the threshold of the recording are included. Calls of "
		"different threads overlap, and so do nested calls, so the shares are of the "
		"sum, not of the wall time.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(oscall),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "calls", .label = "OS", .place = 1 },
	.run = run,
};
