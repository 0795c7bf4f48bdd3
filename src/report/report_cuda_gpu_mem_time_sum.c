/*
 * cuda_gpu_mem_time_sum: time of copies and memsets by direction.
 */
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Count"),
	{ .name = "Operation", .kind = LULL_OUT_TEXT, .doc = "copy by direction, or memset" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	(void)err;
	lull_gpu_sum(r, out, options, LULL_WORK_MEMORY, false);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_mem_time_sum = {
	.name = "cuda_gpu_mem_time_sum",
	.old_name = "gpumemtimesum",
	.display = "CUDA GPU MemOps Summary (by Time)",
	.summary = "time of copies and memsets by direction",
	.help = "How long copies and memsets took on the devices, by direction.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(memcpy) | LULL_NEED(memset),
	.is_default = true,
	.sorted_by = 2,
	.page = { .tab = "copies", .label = "by time", .names = "Operation" },
	.run = run,
};
