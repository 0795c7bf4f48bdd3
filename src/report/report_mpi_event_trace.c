/*
 * mpi_event_trace: each call of MPI.
 */
#include "model/order.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/mpi.h"

#define SIZE(text, meaning)                                                                        \
	{                                                                                          \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3, .doc = meaning, \
		.is_spare = true                                                                   \
	}

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "begin" },
	{ .name = "End", .kind = LULL_OUT_NS, .is_moment = true, .doc = "end", .is_spare = true },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "end minus start" },
	{ .name = "Event", .kind = LULL_OUT_TEXT, .doc = "function" },
	{ .name = "Pid", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Tid", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "Tag", .kind = LULL_OUT_ID, .doc = "tag of the message", .is_spare = true },
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "rank of the caller" },
	{ .name = "PeerRank", .kind = LULL_OUT_ID, .doc = "rank it communicates with" },
	{ .name = "RootRank", .kind = LULL_OUT_ID, .doc = "root of a collective" },
	SIZE("Size", "size of the message"),
	SIZE("CollSendSize", "bytes the rank sent to a collective"),
	SIZE("CollRecvSize", "bytes the rank received from a collective"),
};

struct call {
	struct lull_mpi_call_row row;
	u64 size_bytes;
};

static bool fill(void *ctx, void *element, const void *columns_of_block, size_t row)
{
	const struct lull_mpi_call_cols *cols = columns_of_block;

	if (!lull_report_covers(ctx, cols->start_ns[row], cols->dur_ns[row]))
		return false;
	*(struct call *)element = (struct call){
		.row = { .start_ns = cols->start_ns[row],
			 .dur_ns = cols->dur_ns[row],
			 .lane = cols->lane[row],
			 .name = cols->name[row],
			 .kind = cols->kind[row],
			 .tag = cols->tag[row],
			 .rank = cols->rank[row],
			 .n_ranks = cols->n_ranks[row],
			 .peer = cols->peer[row],
			 .root = cols->root[row],
			 .send_bytes = cols->send_bytes[row],
			 .recv_bytes = cols->recv_bytes[row] },
		.size_bytes = lull_mpi_size_bytes(cols, row),
	};
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct lull_mpi_call_row *x = &((const struct call *)a)->row;
	const struct lull_mpi_call_row *y = &((const struct call *)b)->row;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->dur_ns < y->dur_ns) - (x->dur_ns > y->dur_ns);
}

static void put_number(struct lull_out *out, i64 number)
{
	if (number >= 0)
		lull_out_i64(out, number);
	else
		lull_out_skip(out);
}

static void put_size(struct lull_out *out, bool is_there, u64 size_bytes)
{
	if (is_there)
		lull_out_f64(out, (f64)size_bytes / LULL_GPU_MB);
	else
		lull_out_skip(out);
}

static void put_call(struct lull_out *out, struct lull_reader *r, const struct call *kept)
{
	const struct lull_mpi_call_row *call = &kept->row;
	struct lull_lane_ids ids = lull_lanes_ids(r, call->lane);
	bool is_collective = call->kind == LULL_MPI_COLLECTIVE;

	lull_out_row(out);
	lull_out_i64(out, (i64)call->start_ns);
	lull_out_i64(out, (i64)(call->start_ns + call->dur_ns));
	lull_out_i64(out, (i64)call->dur_ns);
	lull_out_text(out, lull_reader_string(r, call->name, NULL));
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	put_number(out, call->tag);
	put_number(out, call->n_ranks ? (i64)call->rank : -1);
	put_number(out, call->peer);
	put_number(out, call->root);
	put_size(out, call->kind == LULL_MPI_P2P, kept->size_bytes);
	put_size(out, is_collective, call->send_bytes);
	put_size(out, is_collective, call->recv_bytes);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	static const char *const wanted[] = { "start_ns",   "dur_ns",	  "lane",    "name", "kind",
					      "tag",	    "rank",	  "n_ranks", "peer", "root",
					      "send_bytes", "recv_bytes", NULL };
	struct lull_report_options mine = *options;
	struct lull_order_source source = {
		.reader = r,
		.table = LULL_TABLE_mpi_call,
		.window = lull_report_window(options),
		.columns = wanted,
		.elem_bytes = sizeof(struct call),
		.fill = fill,
		.compare = by_start,
		.ctx = &mine,
	};
	struct lull_order order;
	const struct call *call;

	(void)err;
	lull_order_begin(&order, &source);
	while ((call = lull_order_next(&order)))
		put_call(out, r, call);
	lull_order_end(&order);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_event_trace = {
	.name = "mpi_event_trace",
	.display = "MPI Event Trace",
	.summary = "each MPI call",
	.help = "Every MPI call, by start, with its ranks and message sizes.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.sorted_by = 1,
	.run = run,
};
