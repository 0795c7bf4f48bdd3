/*
 * gil_sum: waiting for Python's interpreter lock by thread.
 */
#include "model/span.h"
#include "report/by_column.h"
#include "report/lanes.h"
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Waits"),
	{ .name = "Of Thread",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of the thread's lifetime (or of the filtered part of it) that it waited" },
	LULL_LANES_COLUMNS,
};

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct lull_by_column *rows = ctx;
	u32 lane = (u32)group->key;
	struct lull_span life = lull_span_cut(lull_span_lane(rows->reader, lane),
					      rows->options->from_ns, rows->options->to_ns);

	/* Divided by 0, an unknown life leaves the cell empty. */
	lull_out_f64(out, 100 * (f64)group->total_ns / (f64)(life.to_ns - life.from_ns));
	lull_lanes_put(out, rows->reader, lane);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_by_column rows = { r, options, LULL_TABLE_gil_wait, "lane" };

	(void)err;
	lull_by_column_put(&rows, out, put_names);
	return LULL_OK;
}

const struct lull_report lull_report_gil_sum = {
	.name = "gil_sum",
	.display = "Python GIL Wait Summary",
	.summary = "waiting for Python's interpreter lock by thread",
	.help = "How often and how long each thread waited for the lock that lets only one thread "
		"of a "
		"Python process run Python code.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(gil_wait),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "calls", .label = "GIL", .place = 2 },
	.run = run,
};
