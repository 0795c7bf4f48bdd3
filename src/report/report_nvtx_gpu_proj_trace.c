/*
 * nvtx_gpu_proj_trace: each range with the time its work took on the devices.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/nvtx.h"
#include "report/projection.h"

static const struct lull_out_column columns[] = {
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
	{ .name = "Projected Start", .kind = LULL_OUT_NS, .doc = "begin of its first work" },
	{ .name = "Projected Duration",
	  .kind = LULL_OUT_NS,
	  .doc = "from there to the end of its last work" },
	{ .name = "Orig Start", .kind = LULL_OUT_NS, .doc = "begin of the range" },
	{ .name = "Orig Duration", .kind = LULL_OUT_NS, .doc = "duration of the range" },
	{ .name = "Style", .kind = LULL_OUT_TEXT, .doc = "PushPop or StartEnd", .is_spare = true },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "NumGPUOps",
	  .kind = LULL_OUT_INT,
	  .doc = "kernels, copies, memsets and graphs launched in it" },
	LULL_NVTX_PLACE_COLUMNS,
};

/* A projection and the number of its range. */
struct row {
	struct lull_projected projected;
	u32 number;
};

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->projected.first_ns != y->projected.first_ns)
		return x->projected.first_ns < y->projected.first_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void put_row(struct lull_out *out, struct lull_reader *r, const struct lull_nest *nest,
		    const struct row *row)
{
	const struct lull_nest_range *range = lull_nest_get(nest, row->number);
	struct lull_lane_ids ids = lull_lanes_ids(r, range->lane);

	lull_out_row(out);
	lull_nvtx_label_name(lull_out_text_begin(out), r, range->label);
	lull_out_text_end(out);
	lull_out_i64(out, (i64)row->projected.first_ns);
	lull_out_i64(out, (i64)(row->projected.last_ns - row->projected.first_ns));
	lull_out_i64(out, (i64)range->start_ns);
	lull_out_i64(out, (i64)range->dur_ns);
	lull_out_text(out, lull_nvtx_style(range->flags & LULL_RANGE_START_END));
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_i64(out, (i64)row->projected.n_works);
	lull_nvtx_put_place(out, nest, row->number);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_projection p;
	struct row *rows;
	size_t n = 0;

	(void)err;
	lull_projection_init(&p, r, options);
	rows = lull_alloc(p.nest.ranges.n, sizeof(*rows));
	for (size_t i = 0; i < p.nest.ranges.n; i++) {
		if (p.ranges[i].n_works)
			rows[n++] = (struct row){ p.ranges[i], (u32)i + 1 };
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_start);
	for (size_t i = 0; i < n; i++)
		put_row(out, r, &p.nest, &rows[i]);
	free(rows);
	lull_projection_release(&p);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_gpu_proj_trace = {
	.name = "nvtx_gpu_proj_trace",
	.old_name = "nvtxgpuproj",
	.display = "NVTX GPU Projection Trace",
	.summary = "each range with the time its work took on the devices",
	.help = "Every range in which work was launched, by the begin of that work: from its first "
		"begin to its last end on the devices. Work belongs to a range if the launching "
		"call "
		"lies in it on the same thread; ranges that ended on another thread are left out.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range) | LULL_NEED(cuda_call),
	.needs_any = LULL_NEED_WORK,
	.empty = "no work was launched inside of a range",
	.is_long = true,
	.run = run,
};
