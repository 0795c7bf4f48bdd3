/*
 * overlap: how much of the time each device computed, copied, and did both.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "model/busy.h"
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	{ .name = "Device", .kind = LULL_OUT_TEXT, .doc = "name and number of the device" },
	{ .name = "Span",
	  .kind = LULL_OUT_NS,
	  .doc = "from its first work to the end of its last; what follows adds up to it" },
	{ .name = "Busy", .kind = LULL_OUT_PERCENT, .doc = "share of the span with any work" },
	{ .name = "Compute Alone", .kind = LULL_OUT_NS, .doc = "kernels or graphs, no copies" },
	{ .name = "Copy Alone", .kind = LULL_OUT_NS, .doc = "copies or memsets, no kernels" },
	{ .name = "Together", .kind = LULL_OUT_NS, .doc = "both at the same time" },
	{ .name = "Idle", .kind = LULL_OUT_NS, .doc = "neither" },
	{ .name = "Hidden",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of the time with copies in which kernels ran, too; empty without copies" },
};

/* Time by what was running: the bits of LULL_BUSY_*. */
#define N_STATES 4

struct times {
	u64 ns[N_STATES];
};

static void add(void *ctx, const struct lull_busy_piece *piece)
{
	struct times *times = ctx;

	times[piece->track].ns[piece->running] += piece->span.to_ns - piece->span.from_ns;
}

static void put_device(struct lull_out *out, struct lull_reader *r, u32 device, const u64 *ns)
{
	u64 compute_ns = ns[LULL_BUSY_COMPUTE], copy_ns = ns[LULL_BUSY_MEMORY];
	u64 both_ns = ns[LULL_BUSY_COMPUTE | LULL_BUSY_MEMORY];
	u64 busy_ns = compute_ns + copy_ns + both_ns, span_ns = busy_ns + ns[0];
	struct lull_str name = LULL_STR_INIT;

	if (!busy_ns)
		return;
	lull_gpu_device_name(&name, r, device);
	lull_out_row(out);
	lull_out_text(out, lull_str_text(&name));
	lull_out_i64(out, (i64)span_ns);
	lull_out_f64(out, 100 * (f64)busy_ns / (f64)span_ns);
	lull_out_i64(out, (i64)compute_ns);
	lull_out_i64(out, (i64)copy_ns);
	lull_out_i64(out, (i64)both_ns);
	lull_out_i64(out, (i64)ns[0]);
	/* Divided by 0, no copies leave the cell empty. */
	lull_out_f64(out, 100 * (f64)both_ns / (f64)(copy_ns + both_ns));
	lull_str_release(&name);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	u32 *tracks = lull_busy_devices(r), n = lull_reader_n_dim(r, LULL_TABLE_device);
	struct times *times = lull_alloc((size_t)n + 1, sizeof(*times));

	(void)err;
	lull_busy_run(r, tracks, lull_report_window(options), add, times);
	for (u32 device = 1; device <= n; device++)
		put_device(out, r, device, times[device].ns);
	free(times);
	free(tracks);
	return LULL_OK;
}

const struct lull_report lull_report_overlap = {
	.name = "overlap",
	.display = "Compute and Copy Overlap",
	.summary = "computing, copying, both and idling of each device",
	.help = "The time of each device from its first work to the end of its last, each "
		"nanosecond "
		"counted once. Copies that run while kernels run cost nothing; copies alone and "
		"idle "
		"time are what can be won. A device that several processes see is one. A filter "
		"cuts "
		"what crosses its edges.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_WORK,
	.empty = "the work belongs to no device",
	.run = run,
};
