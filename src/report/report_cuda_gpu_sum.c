/*
 * cuda_gpu_sum: time of kernels, copies and memsets by name.
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
	lull_gpu_sum(r, out, options, LULL_WORK_ALL, true);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_sum = {
	.name = "cuda_gpu_sum",
	.old_name = "gpusum",
	.display = "CUDA GPU Summary (Kernels/MemOps)",
	.summary = "time of kernels, copies and memsets by name",
	.help = "How long all work of the devices took, by name. A graph that was recorded as a "
		"whole is one operation. Arguments as in cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_ANY_WORK,
	.sorted_by = 2,
	.run = run,
};
