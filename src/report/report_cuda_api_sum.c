/*
 * cuda_api_sum: time in calls of CUDA by function.
 */
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Num Calls"),
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_gpu_sum(r, out, options, LULL_GPU_CALLS, false);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_api_sum = {
	.name = "cuda_api_sum",
	.old_name = "cudaapisum",
	.display = "CUDA API Summary",
	.summary = "time in CUDA calls by function",
	.help = "How long threads were inside calls of the CUDA runtime and driver, by function. "
		"If a runtime call makes a driver call and both were recorded, the time counts "
		"for both. A version suffix, _v and four digits, is removed from the names.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(cuda_call),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "calls", .label = "CUDA" },
	.run = run,
};
