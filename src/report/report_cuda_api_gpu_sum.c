/*
 * cuda_api_gpu_sum: time of calls of CUDA and of what devices did by name.
 */
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	LULL_GPU_CATEGORY_COLUMNS,
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_gpu_sum(r, out, options, LULL_WORK_ALL | LULL_GPU_CALLS, true);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_api_gpu_sum = {
	.name = "cuda_api_gpu_sum",
	.old_name = "apigpusum",
	.display = "CUDA Summary (API/Kernels/MemOps)",
	.summary = "time of CUDA calls and device work by name",
	.help = "CUDA calls, kernels, copies and memsets in one table. The host and the devices "
		"work at the same time, so the shares do not add up to the wall time. Arguments "
		"as in cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_ANY_WORK | LULL_NEED(cuda_call),
	.sorted_by = 2,
	.run = run,
};
