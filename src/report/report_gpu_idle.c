/*
 * gpu_idle: when devices had nothing to do, and what the thread did that gave them work next.
 */
#include <stdlib.h>

#include "base/duration.h"
#include "base/sort.h"
#include "model/busy.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/nvtx.h"
#include "report/waiting.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "when the device ran out of work" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "until it got work again" },
	{ .name = "Device", .kind = LULL_OUT_TEXT, .doc = "name and number", .is_spare = true },
	{ .name = "Before",
	  .kind = LULL_OUT_TEXT,
	  .doc = "what ran last",
	  .is_kernel = true,
	  .is_spare = true },
	{ .name = "After", .kind = LULL_OUT_TEXT, .doc = "what ran next", .is_kernel = true },
	{ .name = "Launched By",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the call that launched the next work; empty if it was not recorded",
	  .is_spare = true },
	LULL_LANES_COLUMNS,
	{ .name = "Range",
	  .kind = LULL_OUT_TEXT,
	  .doc = "innermost range of that thread in the middle of the gap; for a thread of "
		 "PyTorch's autograd, of the thread that waits for it" },
	{ .name = "Longest Call",
	  .kind = LULL_OUT_TEXT,
	  .doc = "C library or CUDA call of that thread that covers most of the gap" },
	{ .name = "In Call", .kind = LULL_OUT_NS, .doc = "how much of the gap it covers" },
};

/* 10 us: longer than a launch takes, shorter than anything a person would look for. */
#define DEFAULT_THRESHOLD_NS 10000u

struct gap {
	struct lull_span span;
	u32 device;
	u32 lane; /* thread that launched `after`, 0 if not known */
	u32 launched_by;
	struct lull_work before, after;
	u32 call; /* string id of the longest call */
	u64 call_ns;
};

struct gaps {
	struct lull_reader *reader;
	u64 threshold_ns;
	struct lull_link link;
	struct lull_vec all; /* struct gap */
};

/* ---- finding them ---- */

static void visit(void *ctx, const struct lull_busy_piece *piece)
{
	struct gaps *g = ctx;
	const struct lull_call *call;
	struct gap *gap;

	if (piece->running || piece->span.to_ns - piece->span.from_ns < g->threshold_ns)
		return;
	call = lull_link_find(&g->link, piece->after);
	gap = lull_vec_push(&g->all);
	*gap = (struct gap){ .span = piece->span,
			     .device = piece->track,
			     .before = *piece->before,
			     .after = *piece->after };
	if (call) {
		gap->lane = call->lane;
		gap->launched_by = call->name;
	}
}

/* ---- what the threads did in them ---- */

/* The gaps of one thread and device do not overlap, so both ends of them are in order. */
static int by_thread(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

/* The first gap of this thread and device or later ones that ends after at_ns. */
static size_t first_behind(const struct gaps *g, u32 lane, u32 device, u64 at_ns)
{
	const struct gap *gaps = g->all.at;
	size_t low = 0, high = g->all.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gap *gap = &gaps[middle];
		bool is_before = gap->lane != lane	 ? gap->lane < lane
				 : gap->device != device ? gap->device < device
							 : gap->span.to_ns <= at_ns;

		if (is_before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Let the gaps that a call reaches into know of it. */
static void offer(struct gaps *g, u32 lane, struct lull_span call, u32 name)
{
	u32 n_devices = lull_reader_n_dim(g->reader, LULL_TABLE_device);
	struct gap *gaps = g->all.at;

	for (u32 device = 1; device <= n_devices; device++) {
		size_t i = first_behind(g, lane, device, call.from_ns);

		for (; i < g->all.n && gaps[i].lane == lane && gaps[i].device == device; i++) {
			struct lull_span part =
				lull_span_cut(gaps[i].span, call.from_ns, call.to_ns);

			if (gaps[i].span.from_ns >= call.to_ns)
				break;
			if (part.to_ns - part.from_ns > gaps[i].call_ns) {
				gaps[i].call_ns = part.to_ns - part.from_ns;
				gaps[i].call = name;
			}
		}
	}
}

static void offer_os_calls(struct gaps *g)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, g->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "lane");
	lull_cursor_want(&c, "name");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++)
			offer(g, cols.lane[i],
			      (struct lull_span){
				      cols.start_ns[i],
				      lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]) },
			      cols.name[i]);
	}
	lull_cursor_release(&c);
}

static void find_calls(struct gaps *g)
{
	const struct lull_call *calls = g->link.calls.at;

	if (g->all.n)
		lull_sort(g->all.at, g->all.n, sizeof(struct gap), by_thread);
	for (size_t i = 0; i < g->link.calls.n; i++)
		offer(g, calls[i].lane, lull_call_span(&calls[i]), calls[i].name);
	offer_os_calls(g);
}

/* ---- the rows ---- */

static int by_length(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	u64 x_ns = x->span.to_ns - x->span.from_ns, y_ns = y->span.to_ns - y->span.from_ns;

	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	if (x->span.from_ns != y->span.from_ns)
		return x->span.from_ns < y->span.from_ns ? -1 : 1;
	return (x->device > y->device) - (x->device < y->device);
}

static void put_work(struct lull_out *out, struct lull_kernels *kernels,
		     const struct lull_work *work)
{
	struct lull_str text = LULL_STR_INIT;

	lull_gpu_work_name(&text, kernels, work);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}

/* The range of the thread in the middle of the gap; autograd's threads have none of their own. */
static u32 range_of(const struct lull_waiting *w, const struct gap *gap)
{
	u64 middle_ns = gap->span.from_ns + (gap->span.to_ns - gap->span.from_ns) / 2;
	struct lull_span middle = { middle_ns, middle_ns };
	u32 range = lull_nest_find(w->nest, gap->lane, middle);

	return range ? range
		     : lull_nest_find(w->nest, lull_waiting_lane(w, gap->lane, middle), middle);
}

static void put_thread(struct lull_out *out, struct lull_reader *r, const struct lull_waiting *w,
		       const struct gap *gap)
{
	u32 range = gap->lane ? range_of(w, gap) : 0;
	struct lull_str name = LULL_STR_INIT;

	if (!gap->lane)
		return;
	lull_gpu_put_call(out, r, gap->launched_by);
	lull_lanes_put(out, r, gap->lane);
	if (range)
		lull_nvtx_label_name(&name, r, lull_nest_get(w->nest, range)->label);
	lull_out_text(out, range ? lull_str_text(&name) : NULL);
	if (gap->call_ns) {
		lull_gpu_put_call(out, r, gap->call);
		lull_out_i64(out, (i64)gap->call_ns);
	}
	lull_str_release(&name);
}

static void put_gaps(struct lull_out *out, struct gaps *g,
		     const struct lull_report_options *options)
{
	const struct gap *gap = g->all.at;
	struct lull_kernels kernels;
	struct lull_waiting waiting;
	struct lull_nest nest;

	if (g->all.n)
		lull_sort(g->all.at, g->all.n, sizeof(struct gap), by_length);
	lull_kernels_init(&kernels, g->reader, options);
	lull_nest_init(&nest, g->reader, LULL_SPAN_ALL, LULL_NEST_ONE_THREAD);
	lull_waiting_init(&waiting, g->reader, &nest);
	for (size_t i = 0; i < g->all.n; i++, gap++) {
		struct lull_str device = LULL_STR_INIT;

		lull_gpu_device_name(&device, g->reader, gap->device);
		lull_out_row(out);
		lull_out_i64(out, (i64)gap->span.from_ns);
		lull_out_i64(out, (i64)(gap->span.to_ns - gap->span.from_ns));
		lull_out_text(out, lull_str_text(&device));
		put_work(out, &kernels, &gap->before);
		put_work(out, &kernels, &gap->after);
		put_thread(out, g->reader, &waiting, gap);
		lull_str_release(&device);
	}
	lull_waiting_release(&waiting);
	lull_nest_release(&nest);
	lull_kernels_release(&kernels);
}

static int parse_threshold(const struct lull_report_options *options, u64 *ns, struct lull_err *err)
{
	char *text = lull_report_arg_value(options, "threshold");
	int rc = text ? lull_duration_parse(text, ns, err) : LULL_OK;

	free(text);
	return rc ? lull_err_wrap(err, "threshold") : LULL_OK;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct gaps g = { .reader = r, .threshold_ns = DEFAULT_THRESHOLD_NS };
	u32 *tracks;

	if (parse_threshold(options, &g.threshold_ns, err))
		return err->code;
	lull_link_init(&g.link, r);
	lull_vec_init(&g.all, sizeof(struct gap));
	tracks = lull_busy_devices(r);
	lull_busy_run(r, tracks, lull_report_window(options), visit, &g);
	find_calls(&g);
	put_gaps(out, &g, options);
	free(tracks);
	lull_vec_release(&g.all);
	lull_link_release(&g.link);
	return LULL_OK;
}

const struct lull_report lull_report_gpu_idle = {
	.name = "gpu_idle",
	.display = "GPU Idle Gaps",
	.summary = "gaps of the devices, and what the host did then",
	.help = "The gaps of each device between its first and its last work, longest first, with "
		"what ran before and after, the thread that launched what came after, and what "
		"that "
		"thread did meanwhile. Gaps shorter than 10 us are left out; threshold=TIME "
		"changes "
		"that, such as gpu_idle:threshold=1ms. The arguments base and mangled as in "
		"cuda_gpu_kern_sum.",
	.args = "threshold= base mangled",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_ANY_WORK,
	.empty = "no device was idle for that long",
	.run = run,
};
