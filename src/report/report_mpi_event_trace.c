/*
 * mpi_event_trace: each call of MPI.
 */
#include <stdlib.h>

#include "report/gpu.h"
#include "report/lanes.h"
#include "report/mpi.h"

#define SIZE_COLUMN(text, meaning)                                                                \
	{                                                                                         \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 6, .doc = meaning \
	}

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .doc = "begin" },
	{ .name = "End", .kind = LULL_OUT_NS, .doc = "end", .is_spare = true },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "how long it took" },
	{ .name = "Event", .kind = LULL_OUT_TEXT, .doc = "function" },
	{ .name = "Pid", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "Tid", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "Tag", .kind = LULL_OUT_ID, .doc = "tag of the message" },
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "this rank in the communicator" },
	{ .name = "PeerRank", .kind = LULL_OUT_ID, .doc = "the other rank" },
	{ .name = "RootRank", .kind = LULL_OUT_ID, .doc = "root of the collective" },
	SIZE_COLUMN("Size", "size of the message"),
	SIZE_COLUMN("CollSendSize", "given to the collective by this rank"),
	SIZE_COLUMN("CollRecvSize", "got from it"),
};

static void collect(struct lull_vec *calls, struct lull_reader *r,
		    const struct lull_report_options *options)
{
	struct lull_mpi_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_mpi_call, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (!lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct lull_mpi_call_row *)lull_vec_push(calls) =
				(struct lull_mpi_call_row){
					.start_ns = cols.start_ns[i],
					.dur_ns = cols.dur_ns[i],
					.lane = cols.lane[i],
					.name = cols.name[i],
					.kind = cols.kind[i],
					.rank = cols.rank[i],
					.n_ranks = cols.n_ranks[i],
					.peer = cols.peer[i],
					.root = cols.root[i],
					.tag = cols.tag[i],
					.send_bytes = cols.send_bytes[i],
					.recv_bytes = cols.recv_bytes[i],
				};
		}
	}
	lull_cursor_release(&c);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_mpi_call_row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* A rank or tag; what is none leaves the cell empty. */
static void put_number(struct lull_out *out, i64 value, bool is_there)
{
	if (is_there && value >= 0)
		lull_out_i64(out, value);
	else
		lull_out_skip(out);
}

static void put_size(struct lull_out *out, u64 size_bytes, bool is_there)
{
	if (is_there)
		lull_out_f64(out, (f64)size_bytes / LULL_GPU_MB);
	else
		lull_out_skip(out);
}

static void put_call(struct lull_out *out, struct lull_reader *r,
		     const struct lull_mpi_call_row *call)
{
	struct lull_lane_ids ids = lull_lanes_ids(r, call->lane);
	bool is_collective = call->kind == LULL_MPI_COLLECTIVE;
	u64 size_bytes = call->send_bytes ? call->send_bytes : call->recv_bytes;

	lull_out_row(out);
	lull_out_i64(out, (i64)call->start_ns);
	lull_out_i64(out, (i64)(call->start_ns + call->dur_ns));
	lull_out_i64(out, (i64)call->dur_ns);
	lull_out_text(out, lull_reader_string(r, call->name, NULL));
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	put_number(out, call->tag, true);
	put_number(out, call->rank, call->n_ranks > 0);
	put_number(out, call->peer, true);
	put_number(out, call->root, true);
	put_size(out, size_bytes, !is_collective && size_bytes);
	put_size(out, call->send_bytes, is_collective);
	put_size(out, call->recv_bytes, is_collective);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_mpi_call_row *call;
	struct lull_vec calls;

	(void)err;
	lull_vec_init(&calls, sizeof(struct lull_mpi_call_row));
	collect(&calls, r, options);
	if (calls.n)
		qsort(calls.at, calls.n, sizeof(struct lull_mpi_call_row), by_start);
	call = calls.at;
	for (size_t i = 0; i < calls.n; i++)
		put_call(out, r, &call[i]);
	lull_vec_release(&calls);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_event_trace = {
	.name = "mpi_event_trace",
	.display = "MPI Event Trace",
	.summary = "each call of MPI",
	.help = "Every call of MPI, by start.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.run = run,
};
