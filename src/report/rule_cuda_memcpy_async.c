/*
 * cuda_memcpy_async: asynchronous copies that are not, because their memory may be paged out.
 */
#include "report/gpu.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	LULL_RULE_TIME_COLUMNS,
	{ .name = "Src Kind", .kind = LULL_OUT_TEXT, .doc = "memory it was copied from" },
	{ .name = "Dst Kind", .kind = LULL_OUT_TEXT, .doc = "memory it was copied to" },
	LULL_RULE_PLACE_COLUMNS,
};

static bool is_pageable(const struct lull_work *work, const char *name)
{
	return lull_rule_is_async(work, name) &&
	       (work->src_kind == LULL_MEMORY_PAGEABLE || work->dst_kind == LULL_MEMORY_PAGEABLE);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	return lull_rule_memory(r, out, options, LULL_WORK_MEMCPY, is_pageable, err);
}

const struct lull_report lull_rule_cuda_memcpy_async = {
	.name = "cuda_memcpy_async",
	.display = "CUDA Async Memcpy with Pageable Memory",
	.summary = "asynchronous copies with pageable host memory",
	.help = "Asynchronous copies whose host memory is pageable, longest first. Duration and "
		"start are those on the device. rows=N shows N of them, -1 all.",
	.finding = "These copies were meant to be asynchronous, but the driver has to copy "
		   "pageable memory through its own buffer: the call blocks and the copy cannot "
		   "overlap kernels.",
	.advice = "Suggestion: allocate the host memory with cudaMallocHost() or cudaHostAlloc() "
		  "(PyTorch: pin_memory=True), and reuse it.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(memcpy),
	.is_default = true,
	.sorted_by = 1,
	.empty = "No problem found: no asynchronous copy uses pageable memory.",
	.run = run,
};
