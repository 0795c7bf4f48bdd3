/*
 * cuda_gpu_kern_sum: time of kernels by name.
 */
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "kernel", .is_kernel = true },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_gpu_sum(r, out, options, LULL_WORK_KERNEL, false);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_kern_sum = {
	.name = "cuda_gpu_kern_sum",
	.old_name = "gpukernsum",
	.display = "CUDA GPU Kernel Summary",
	.summary = "time of kernels by name",
	.help = "How long kernels ran on the devices, by name. Kernels that ran at the same time "
		"are counted separately, so the shares are of the sum, not of the wall time. The "
		"argument base shortens names to the function, mangled shows the mangled names, "
		"nvtx-name adds the innermost range of the launch before the name.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(kernel),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "kernels", .label = "by name" },
	.run = run,
};
