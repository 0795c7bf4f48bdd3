/*
 * nvtx_pushpop_sum: time in push/pop ranges by name.
 */
#include "report/nvtx.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Range", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_nvtx_sum(r, out, options, LULL_NVTX_PUSHPOP);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_pushpop_sum = {
	.name = "nvtx_pushpop_sum",
	.old_name = "nvtxppsum",
	.display = "NVTX Push/Pop Range Summary",
	.summary = "time in push/pop ranges by name",
	.help = "How long the ranges took that a thread pushed and popped, by name. The time of "
		"nested ranges counts for both.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range),
	.empty = "there are ranges, but none that was pushed and popped",
	.sorted_by = 2,
	.run = run,
};
