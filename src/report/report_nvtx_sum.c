/*
 * nvtx_sum: time in ranges by name.
 */
#include "report/nvtx.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Style", .kind = LULL_OUT_TEXT, .doc = "PushPop or StartEnd", .is_spare = true },
	{ .name = "Range", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
	{ .name = "Of Step",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "time of the process's ranges in the steady steps, as a share of these; left out "
		 "if there are no steps, and where there are more than 100,000 kernels",
	  .is_wanted = true },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_nvtx_sum(r, out, options, LULL_NVTX_BOTH);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_sum = {
	.name = "nvtx_sum",
	.old_name = "nvtxsum",
	.display = "NVTX Range Summary",
	.summary = "time in ranges by name",
	.help = "How long the ranges of NVTX and lull.h took, by name and style. A range inside "
		"another "
		"counts for both, so `Time` is a share of the sum, not of the wall time; `Of "
		"Step` is the share of the step (see also `phases`). Ranges that were open when "
		"the recording ended count up to that moment.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.n_optional = 1,
	.needs = LULL_NEED(range),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "ranges", .label = "on the CPU", .names = "Range" },
	.run = run,
};
