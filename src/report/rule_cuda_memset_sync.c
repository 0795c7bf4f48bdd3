/*
 * cuda_memset_sync: memsets that the host waited for.
 */
#include "report/gpu.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	LULL_RULE_TIME_COLUMNS,
	{ .name = "Mem Kind", .kind = LULL_OUT_TEXT, .doc = "memory that was set" },
	LULL_RULE_PLACE_COLUMNS,
};

/* On device memory the call returns before the work is done, whatever it is called. */
static bool is_blocking(const struct lull_work *work, const char *name)
{
	bool is_waited_for = work->dst_kind == LULL_MEMORY_PINNED ||
			     work->dst_kind == LULL_MEMORY_MANAGED ||
			     work->dst_kind == LULL_MEMORY_MANAGED_STATIC;

	return name && is_waited_for && !lull_rule_is_async(work, name);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	return lull_rule_memory(r, out, options, LULL_WORK_MEMSET, is_blocking, err);
}

const struct lull_report lull_rule_cuda_memset_sync = {
	.name = "cuda_memset_sync",
	.display = "CUDA Synchronous Memset",
	.summary = "memsets that the host waited for",
	.help = "Synchronous memsets of pinned host memory or of unified memory, longest first. "
		"Duration and start are those on the device. rows=N shows N of them, -1 all.",
	.finding = "The host waited for each of these memsets and could not launch anything "
		   "meanwhile.",
	.advice = "Suggestion: use cudaMemsetAsync() or a similar call on a stream.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(memset),
	.is_default = true,
	.sorted_by = 1,
	.empty = "No problem found: no synchronous memset of pinned or unified memory.",
	.run = run,
};
