/*
 * mpi_msg_size_sum: bytes that MPI moved by function.
 */
#include "report/mpi.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_SIZE_COLUMNS("Total Message Volume", "Instances"),
	{ .name = "Source",
	  .kind = LULL_OUT_TEXT,
	  .doc = "p2p: messages between two ranks; coll_send, coll_recv: bytes a rank sent to and "
		 "received from collectives" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

/* The key of a group: its name, and one of these after it. */
enum source { P2P, SEND, RECV, N_SOURCES };

struct messages {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_sum *sum;
	struct lull_out *out;
};

static void add_size(const struct messages *m, u32 name, enum source source, u64 size_bytes)
{
	u64 key = (u64)name * N_SOURCES + source;

	lull_sum_add(m->sum, lull_sum_group(m->sum, key), size_bytes);
}

static void add(void *ctx, const struct lull_mpi_call_cols *cols, size_t row)
{
	const struct messages *m = ctx;

	if (cols->kind[row] == LULL_MPI_P2P) {
		add_size(m, cols->name[row], P2P, lull_mpi_size_bytes(cols, row));
	} else if (cols->kind[row] == LULL_MPI_COLLECTIVE) {
		if (cols->send_bytes[row])
			add_size(m, cols->name[row], SEND, cols->send_bytes[row]);
		if (cols->recv_bytes[row])
			add_size(m, cols->name[row], RECV, cols->recv_bytes[row]);
	}
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct messages *m = ctx;

	m->sum = sum;
	lull_mpi_each(m->reader, m->options, add, m);
}

/* What the sum calls ns are bytes here. */
static void put_row(void *ctx, const struct lull_sum_group *group)
{
	static const char *const sources[] = { "p2p", "coll_send", "coll_recv" };
	const struct messages *m = ctx;

	lull_out_row(m->out);
	lull_sum_put_sizes(m->out, group);
	lull_out_text(m->out, sources[group->key % N_SOURCES]);
	lull_out_text(m->out, lull_reader_string(m->reader, (u32)(group->key / N_SOURCES), NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct messages m = { .reader = r, .options = options, .out = out };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &m);
	lull_sum_each(&sum, put_row, &m);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_msg_size_sum = {
	.name = "mpi_msg_size_sum",
	.display = "MPI Message Size Summary",
	.summary = "bytes that MPI calls transferred by function",
	.help = "How much was sent between two ranks, and to and from collectives, by "
		"function.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.sorted_by = 1,
	.empty = "no MPI call transferred a message",
	.run = run,
};
