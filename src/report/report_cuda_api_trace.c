/*
 * cuda_api_trace: each call of CUDA.
 */
#include <stdlib.h>

#include "report/gpu.h"
#include "report/lanes.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .doc = "begin" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "how long it took" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
	{ .name = "Result", .kind = LULL_OUT_ID, .doc = "what it returned, 0 is success" },
	{ .name = "CorrID",
	  .kind = LULL_OUT_ID,
	  .doc = "number that the work it started carries, too" },
	{ .name = "Pid", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Tid", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "T-Pri",
	  .kind = LULL_OUT_ID,
	  .doc = "priority of the thread; not recorded",
	  .is_spare = true },
	{ .name = "Thread Name", .kind = LULL_OUT_TEXT, .doc = "name of the thread" },
};

static void collect(struct lull_vec *calls, struct lull_reader *r,
		    const struct lull_report_options *options)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (!lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct lull_cuda_call_row *)lull_vec_push(calls) =
				(struct lull_cuda_call_row){
					.start_ns = cols.start_ns[i],
					.dur_ns = cols.dur_ns[i],
					.lane = cols.lane[i],
					.name = cols.name[i],
					.correlation = cols.correlation[i],
					.ret = cols.ret[i],
				};
		}
	}
	lull_cursor_release(&c);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_cuda_call_row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
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
	const struct lull_cuda_call_row *call;
	struct lull_vec calls;

	(void)err;
	lull_vec_init(&calls, sizeof(struct lull_cuda_call_row));
	collect(&calls, r, options);
	if (calls.n)
		qsort(calls.at, calls.n, sizeof(struct lull_cuda_call_row), by_start);
	call = calls.at;
	for (size_t i = 0; i < calls.n; i++)
		put_call(out, r, &call[i]);
	lull_vec_release(&calls);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_api_trace = {
	.name = "cuda_api_trace",
	.old_name = "cudaapitrace",
	.display = "CUDA API Trace",
	.summary = "each call of CUDA",
	.help = "Every call of the CUDA runtime and driver, by start.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(cuda_call),
	.run = run,
};
