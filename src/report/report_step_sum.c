/*
 * step_sum: how long the steps of each loop took.
 */
#include "report/lanes.h"
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Steps"),
	LULL_LANES_COLUMNS,
};

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct lull_lanes_rows *rows = ctx;

	lull_lanes_put(out, rows->reader, (u32)group->key);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_lanes_rows rows = { r, options, LULL_TABLE_step };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, lull_lanes_scan, &rows);
	lull_sum_write(&sum, out, put_names, &rows);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_step_sum = {
	.name = "step_sum",
	.display = "Step Summary",
	.summary = "how long the steps of the program's loop took",
	.help = "The wall time of the steps, one row for each thread that counts steps. A median "
		"far below "
		"the mean says that a few steps are slow; the report `steps` says which.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(step),
	.is_default = true,
	.run = run,
};
