/*
 * nvtx_startend_sum: time in start/end ranges by name.
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
	lull_nvtx_sum(r, out, options, LULL_NVTX_STARTEND);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_startend_sum = {
	.name = "nvtx_startend_sum",
	.old_name = "nvtxsssum",
	.display = "NVTX Start/End Range Summary",
	.summary = "time in start/end ranges by name",
	.help = "How long the ranges took that were started and ended by id, perhaps on different "
		"threads, "
		"by name.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range),
	.empty = "there are ranges, but none that was started and ended by id",
	.sorted_by = 2,
	.run = run,
};
