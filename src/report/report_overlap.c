/*
 * overlap: how much of the time each device computed, copied, communicated, and did several of
 * these.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "model/busy.h"
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	{ .name = "Device", .kind = LULL_OUT_TEXT, .doc = "name and number of the device" },
	{ .name = "Span",
	  .kind = LULL_OUT_NS,
	  .doc = "from its first work to the end of its last; the times that follow add up to it" },
	{ .name = "Busy", .kind = LULL_OUT_PERCENT, .doc = "share of the span with any work" },
	{ .name = "Compute Alone",
	  .kind = LULL_OUT_NS,
	  .doc = "kernels, graphs or memsets, nothing else" },
	{ .name = "Copy Alone", .kind = LULL_OUT_NS, .doc = "copies, nothing else" },
	{ .name = "Collective Alone",
	  .kind = LULL_OUT_NS,
	  .doc = "collectives, nothing else",
	  .is_spare = true },
	{ .name = "Compute+Copy",
	  .kind = LULL_OUT_NS,
	  .doc = "these two at the same time",
	  .is_spare = true },
	{ .name = "Compute+Collective", .kind = LULL_OUT_NS, .doc = "these two", .is_spare = true },
	{ .name = "Copy+Collective", .kind = LULL_OUT_NS, .doc = "these two", .is_spare = true },
	{ .name = "All Three",
	  .kind = LULL_OUT_NS,
	  .doc = "all at the same time",
	  .is_spare = true },
	{ .name = "Idle", .kind = LULL_OUT_NS, .doc = "nothing" },
	{ .name = "Hidden Copies",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of the time with copies in which kernels computed, too; empty without "
		 "them",
	  .is_spare = true },
	{ .name = "Hidden Collectives",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "the same for collectives",
	  .is_spare = true },
};

/* Time by what was running: the bits of LULL_BUSY_*. */
struct times {
	u64 ns[LULL_BUSY_STATES];
};

static void add(void *ctx, const struct lull_busy_piece *piece)
{
	struct times *times = ctx;

	times[piece->track].ns[piece->running] += piece->span.to_ns - piece->span.from_ns;
}

/* How much of the time with `what` computed, too; not a number if there is none. */
static f64 hidden_pct(const u64 *ns, unsigned what)
{
	u64 all_ns = 0, hidden_ns = 0;

	for (unsigned state = 0; state < LULL_BUSY_STATES; state++) {
		if (!(state & what))
			continue;
		all_ns += ns[state];
		hidden_ns += state & LULL_BUSY_COMPUTE ? ns[state] : 0;
	}
	return 100 * (f64)hidden_ns / (f64)all_ns;
}

static void put_device(struct lull_out *out, struct lull_reader *r, u32 device, const u64 *ns)
{
	static const unsigned order[] = {
		LULL_BUSY_COMPUTE,
		LULL_BUSY_COPY,
		LULL_BUSY_COLLECTIVE,
		LULL_BUSY_COMPUTE | LULL_BUSY_COPY,
		LULL_BUSY_COMPUTE | LULL_BUSY_COLLECTIVE,
		LULL_BUSY_COPY | LULL_BUSY_COLLECTIVE,
		LULL_BUSY_COMPUTE | LULL_BUSY_COPY | LULL_BUSY_COLLECTIVE,
		0,
	};
	struct lull_str name = LULL_STR_INIT;
	u64 span_ns = 0;

	for (unsigned state = 0; state < LULL_BUSY_STATES; state++)
		span_ns += ns[state];
	if (span_ns == ns[0])
		return;
	lull_gpu_device_name(&name, r, device);
	lull_out_row(out);
	lull_out_text(out, lull_str_text(&name));
	lull_out_i64(out, (i64)span_ns);
	lull_out_f64(out, 100 * (f64)(span_ns - ns[0]) / (f64)span_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(order); i++)
		lull_out_i64(out, (i64)ns[order[i]]);
	lull_out_f64(out, hidden_pct(ns, LULL_BUSY_COPY));
	lull_out_f64(out, hidden_pct(ns, LULL_BUSY_COLLECTIVE));
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
	.display = "Compute, Copy and Collective Overlap",
	.summary = "what each device did: compute, copy, communicate, idle",
	.help = "The time of each device from its first work to the end of its last, each "
		"nanosecond counted once. Copies and collectives that run while kernels compute "
		"cost nothing. They cost time when they run alone, and so does idle time. "
		"Collectives are the kernels that exchange data with other devices: those of "
		"NCCL, RCCL and NVSHMEM, and all-reduces of other libraries, recognised by their "
		"names. A device that several processes use is one row. A filter cuts what "
		"crosses its edges.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_ANY_WORK,
	.empty = "the work belongs to no device",
	.page = { .tab = "timeline" },
	.run = run,
};
