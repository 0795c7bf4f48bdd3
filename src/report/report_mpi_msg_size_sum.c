/*
 * mpi_msg_size_sum: bytes of messages and collectives by function.
 */
#include "report/gpu.h"
#include "report/mpi.h"
#include "report/report.h"
#include "report/sum.h"

#define SIZE_COLUMN(text, meaning)                                                                \
	{                                                                                         \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3, .doc = meaning \
	}

static const struct lull_out_column columns[] = {
	SIZE_COLUMN("Total Message Volume", "sum of the sizes; 1 MB is a million bytes"),
	{ .name = "Instances", .kind = LULL_OUT_INT, .doc = "how many" },
	SIZE_COLUMN("Avg", "mean size"),
	SIZE_COLUMN("Med", "median size"),
	SIZE_COLUMN("Min", "smallest"),
	SIZE_COLUMN("Max", "largest"),
	SIZE_COLUMN("StdDev", "standard deviation of the sample"),
	{ .name = "Source", .kind = LULL_OUT_TEXT, .doc = "p2p, coll_send or coll_recv" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

enum { P2P, COLL_SEND, COLL_RECV };

struct sizes {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_out *out;
};

static void add(struct lull_sum *sum, u64 source, u32 name, u64 size_bytes)
{
	if (size_bytes)
		lull_sum_add(sum, lull_sum_group(sum, source << 32 | name), size_bytes);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	const struct sizes *s = ctx;
	struct lull_mpi_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_mpi_call, s->options->from_ns,
			 s->options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 send = cols.send_bytes[i], recv = cols.recv_bytes[i];

			if (!lull_report_covers(s->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			if (cols.kind[i] == LULL_MPI_P2P) {
				add(sum, P2P, cols.name[i], send ? send : recv);
			} else if (cols.kind[i] == LULL_MPI_COLLECTIVE) {
				add(sum, COLL_SEND, cols.name[i], send);
				add(sum, COLL_RECV, cols.name[i], recv);
			}
		}
	}
	lull_cursor_release(&c);
}

/* What the sum calls ns are bytes here. */
static void put_row(void *ctx, const struct lull_sum_group *group)
{
	static const char *const sources[] = { "p2p", "coll_send", "coll_recv" };
	const struct sizes *s = ctx;

	lull_out_row(s->out);
	lull_out_f64(s->out, (f64)group->total_ns / LULL_GPU_MB);
	lull_out_i64(s->out, (i64)group->n);
	lull_out_f64(s->out, (f64)group->total_ns / (f64)group->n / LULL_GPU_MB);
	lull_out_f64(s->out, group->median_ns / LULL_GPU_MB);
	lull_out_f64(s->out, (f64)group->min_ns / LULL_GPU_MB);
	lull_out_f64(s->out, (f64)group->max_ns / LULL_GPU_MB);
	lull_out_f64(s->out, lull_sum_deviation(group) / LULL_GPU_MB);
	lull_out_text(s->out, sources[group->key >> 32]);
	lull_out_text(s->out, lull_reader_string(s->reader, (u32)group->key, NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct sizes s = { r, options, out };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	lull_sum_each(&sum, put_row, &s);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_msg_size_sum = {
	.name = "mpi_msg_size_sum",
	.display = "MPI Message Size Summary",
	.summary = "bytes of messages and collectives by function",
	.help = "How much ranks sent and received between two (p2p), gave to collectives "
		"(coll_send) "
		"and got from them (coll_recv), by function. A message counts where it is sent and "
		"where it is received. Calls without bytes are left out.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.run = run,
};
