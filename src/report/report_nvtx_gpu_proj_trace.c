/*
 * nvtx_gpu_proj_trace: each range with the time its work took on the devices.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "model/runsort.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/nvtx.h"
#include "report/projection.h"

static const struct lull_out_column columns[] = {
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
	{ .name = "Projected Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "start of its first work" },
	{ .name = "Projected Duration",
	  .kind = LULL_OUT_NS,
	  .doc = "from there to the end of its last work" },
	{ .name = "Orig Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "start of the range" },
	{ .name = "Orig Duration", .kind = LULL_OUT_NS, .doc = "duration of the range" },
	{ .name = "Style", .kind = LULL_OUT_TEXT, .doc = "PushPop or StartEnd", .is_spare = true },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "NumGPUOps",
	  .kind = LULL_OUT_INT,
	  .doc = "kernels, copies, memsets and graphs launched in it" },
	LULL_NVTX_PLACE_COLUMNS,
};

/* A range by the start of its work. */
struct row {
	u64 first_ns;
	u32 number;
};

/* Cells that many rows have in common. */
struct memos {
	struct lull_out_memo name;   /* by label */
	struct lull_out_memo thread; /* by lane and style */
};

static void put_name(struct lull_out *out, struct lull_reader *r, u32 label, struct memos *memos)
{
	if (lull_out_recall(out, &memos->name, label))
		return;
	lull_nvtx_label_name(lull_out_text_begin(out), r, label);
	lull_out_text_end(out);
	lull_out_remember(out, &memos->name, label);
}

static void put_thread(struct lull_out *out, struct lull_reader *r,
		       const struct lull_nest_range *range, struct memos *memos)
{
	bool is_startend = range->flags & LULL_RANGE_START_END;
	u64 key = 2 * (u64)range->lane + is_startend;
	struct lull_lane_ids ids;

	if (lull_out_recall(out, &memos->thread, key))
		return;
	ids = lull_lanes_ids(r, range->lane);
	lull_out_text(out, lull_nvtx_style(is_startend));
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_remember(out, &memos->thread, key);
}

static void put_row(struct lull_out *out, struct lull_reader *r, const struct lull_projection *p,
		    u32 number, struct memos *memos)
{
	const struct lull_nest_range *range = lull_nest_get(&p->nest, number);
	const struct lull_projected *projected = &p->ranges[number - 1];

	lull_out_row(out);
	put_name(out, r, range->label, memos);
	lull_out_i64(out, (i64)projected->first_ns);
	lull_out_i64(out, (i64)(projected->last_ns - projected->first_ns));
	lull_out_i64(out, (i64)range->start_ns);
	lull_out_i64(out, (i64)range->dur_ns);
	put_thread(out, r, range, memos);
	lull_out_i64(out, (i64)projected->n_works);
	lull_nvtx_put_place(out, &p->nest, number);
}

/* The ranges that have work, by its start; those that begin together keep their order. */
static struct row *sort(const struct lull_projection *p, size_t *n)
{
	struct row *rows = lull_alloc(p->nest.ranges.n, sizeof(*rows));

	*n = 0;
	for (size_t i = 0; i < p->nest.ranges.n; i++) {
		if (p->ranges[i].n_works)
			rows[(*n)++] = (struct row){ p->ranges[i].first_ns, (u32)i + 1 };
	}
	lull_runsort(rows, *n, sizeof(*rows));
	return rows;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_projection p;
	struct memos memos;
	struct row *rows;
	size_t n;

	(void)err;
	lull_out_memo_init(&memos.name);
	lull_out_memo_init(&memos.thread);
	lull_projection_init(&p, r, options);
	rows = sort(&p, &n);
	for (size_t i = 0; i < n; i++)
		put_row(out, r, &p, rows[i].number, &memos);
	free(rows);
	lull_projection_release(&p);
	lull_out_memo_release(&memos.name);
	lull_out_memo_release(&memos.thread);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_gpu_proj_trace = {
	.name = "nvtx_gpu_proj_trace",
	.old_name = "nvtxgpuproj",
	.display = "NVTX GPU Projection Trace",
	.summary = "each range with the time its work took on the devices",
	.help = "Every range in which work was launched, by the start of that work: from the "
		"start of its first work to the end of its last on the devices. Work belongs to "
		"a range if the launching call is inside the range on the same thread; what "
		"PyTorch's autograd launches on threads of its own belongs to the ranges of the "
		"thread that waits for it, such as torch:backward. Ranges that ended on another "
		"thread are left out.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range) | LULL_NEED(cuda_call),
	.needs_any = LULL_NEED_ANY_WORK,
	.empty = "no work was launched inside a range",
	.is_long = true,
	.run = run,
};
