/*
 * mpi_event_sum: time in calls of MPI by function.
 */
#include "report/mpi.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Source",
	  .kind = LULL_OUT_TEXT,
	  .doc = "p2p between two ranks, coll collectives, start_wait, one_sided, file, other" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

/* The key of a group: its name, and its kind after it. */
#define KIND_BITS 8

struct events {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_sum *sum;
};

static void add(void *ctx, const struct lull_mpi_call_cols *cols, size_t row)
{
	const struct events *events = ctx;
	u64 key = (u64)cols->name[row] << KIND_BITS | cols->kind[row];

	lull_sum_add(events->sum, lull_sum_group(events->sum, key), cols->dur_ns[row]);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct events *events = ctx;

	events->sum = sum;
	lull_mpi_each(events->reader, events->options, add, events);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	static const char *const sources[] = {
		[LULL_MPI_P2P] = "p2p",
		[LULL_MPI_COLLECTIVE] = "coll",
		[LULL_MPI_REQUEST] = "start_wait",
		[LULL_MPI_ONE_SIDED] = "one_sided",
		[LULL_MPI_FILE] = "file",
		[LULL_MPI_OTHER] = "other",
	};
	const struct events *events = ctx;
	u8 kind = (u8)group->key;

	lull_out_text(out, kind && kind < LULL_COUNT_OF(sources) ? sources[kind] : "other");
	lull_out_text(out,
		      lull_reader_string(events->reader, (u32)(group->key >> KIND_BITS), NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct events events = { .reader = r, .options = options };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &events);
	lull_sum_write(&sum, out, put_names, &events);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_event_sum = {
	.name = "mpi_event_sum",
	.display = "MPI Event Summary",
	.summary = "time in MPI calls by function",
	.help = "How long threads were inside MPI calls, by function.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.sorted_by = 2,
	.run = run,
};
