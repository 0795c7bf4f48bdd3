/*
 * cuda_memcpy_sync: copies that the host waited for.
 */
#include "report/gpu.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	LULL_RULE_TIME_COLUMNS,
	{ .name = "Src Kind", .kind = LULL_OUT_TEXT, .doc = "memory it was copied from" },
	{ .name = "Dst Kind", .kind = LULL_OUT_TEXT, .doc = "memory it was copied to" },
	LULL_RULE_PLACE_COLUMNS,
};

/* The driver stages host-to-device copies up to this size, and the call returns at once. */
#define STAGED_BYTES   65536u
#define HOST_TO_DEVICE 1u /* memcpy.copy_kind */

static bool is_blocking(const struct lull_work *work, const char *name)
{
	bool is_staged = work->what == HOST_TO_DEVICE && work->size_bytes <= STAGED_BYTES;

	/* Without its call nobody knows: some files do not say what the driver did. */
	return name && !is_staged && !lull_rule_is_async(work, name);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	return lull_rule_memory(r, out, options, LULL_WORK_MEMCPY, is_blocking, err);
}

const struct lull_report lull_rule_cuda_memcpy_sync = {
	.name = "cuda_memcpy_sync",
	.display = "CUDA Synchronous Memcpy",
	.summary = "copies that the host waited for",
	.help = "Synchronous copies, longest first. Those from host to device of 64 KB or less are "
		"left out: the driver buffers them and the call does not wait. Duration and start "
		"are those on the device. rows=N shows N of them, -1 all.",
	.finding = "The host waited for each of these copies and could not launch anything "
		   "meanwhile.",
	.advice = "Suggestion: use cudaMemcpyAsync() or a similar call on a stream with pinned "
		  "host memory (PyTorch: non_blocking=True), and wait only where the data is "
		  "needed.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(memcpy),
	.is_default = true,
	.sorted_by = 1,
	.empty = "No problem found: no synchronous copy besides small ones from host to device.",
	.run = run,
};
