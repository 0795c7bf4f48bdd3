/*
 * cuda_api_trace: each call of CUDA.
 */
#include "model/order.h"
#include "report/gpu.h"
#include "report/lanes.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "begin" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "how long it took" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
	{ .name = "Result", .kind = LULL_OUT_ID, .doc = "what it returned, 0 is success" },
	{ .name = "CorrID",
	  .kind = LULL_OUT_ID,
	  .doc = "correlation id, shared with the work it launched" },
	{ .name = "Pid", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Tid", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "T-Pri",
	  .kind = LULL_OUT_ID,
	  .doc = "priority of the thread; not recorded",
	  .is_spare = true },
	{ .name = "Thread Name", .kind = LULL_OUT_TEXT, .doc = "name of the thread" },
};

static bool fill(void *ctx, void *element, const void *block, size_t i)
{
	const struct lull_report_options *options = ctx;
	const struct lull_cuda_call_cols *cols = block;

	*(struct lull_cuda_call_row *)element = (struct lull_cuda_call_row){
		.start_ns = cols->start_ns[i],
		.dur_ns = cols->dur_ns[i],
		.lane = cols->lane[i],
		.name = cols->name[i],
		.correlation = cols->correlation[i],
		.ret = cols->ret[i],
	};
	return lull_report_covers(options, cols->start_ns[i], cols->dur_ns[i]);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_cuda_call_row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns < y->dur_ns ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void put_call(struct lull_out *out, struct lull_reader *r,
		     const struct lull_cuda_call_row *call)
{
	struct lull_lane_ids ids = lull_lanes_ids(r, call->lane);

	lull_out_row(out);
	lull_out_i64(out, (i64)call->start_ns);
	lull_out_i64(out, (i64)call->dur_ns);
	lull_gpu_put_call(out, r, call->name);
	lull_out_i64(out, call->ret);
	lull_out_i64(out, call->correlation);
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_skip(out);
	lull_out_text(out, lull_reader_string(r, lull_gpu_lane(r, call->lane).name, NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	static const char *const wanted[] = { "start_ns",    "dur_ns", "lane", "name",
					      "correlation", "ret",    NULL };
	struct lull_report_options mine = *options;
	struct lull_order_source source = {
		.reader = r,
		.table = LULL_TABLE_cuda_call,
		.window = lull_report_window(options),
		.columns = wanted,
		.elem_bytes = sizeof(struct lull_cuda_call_row),
		.fill = fill,
		.compare = by_start,
		.ctx = &mine,
	};
	const struct lull_cuda_call_row *call;
	struct lull_order order;

	(void)err;
	lull_order_begin(&order, &source);
	while ((call = lull_order_next(&order)))
		put_call(out, r, call);
	lull_order_end(&order);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_api_trace = {
	.name = "cuda_api_trace",
	.old_name = "cudaapitrace",
	.display = "CUDA API Trace",
	.summary = "each CUDA call",
	.help = "Every call of the CUDA runtime and driver, by start.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(cuda_call),
	.is_long = true,
	.sorted_by = 1,
	.run = run,
};
