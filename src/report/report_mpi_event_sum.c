/*
 * mpi_event_sum: time in calls of MPI by function.
 */
#include "report/mpi.h"
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "Source", .kind = LULL_OUT_TEXT, .doc = "kind of call" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

struct calls {
	struct lull_reader *reader;
	const struct lull_report_options *options;
};

static void scan(void *ctx, struct lull_sum *sum)
{
	const struct calls *calls = ctx;
	struct lull_mpi_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, calls->reader, LULL_TABLE_mpi_call, calls->options->from_ns,
			 calls->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "name");
	lull_cursor_want(&c, "kind");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 key = (u64)cols.kind[i] << 32 | cols.name[i];

			if (lull_report_covers(calls->options, cols.start_ns[i], cols.dur_ns[i]))
				lull_sum_add(sum, lull_sum_group(sum, key), cols.dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct calls *calls = ctx;

	lull_out_text(out, lull_mpi_kind((u8)(group->key >> 32)));
	lull_out_text(out, lull_reader_string(calls->reader, (u32)group->key, NULL));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct calls calls = { r, options };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &calls);
	lull_sum_write(&sum, out, put_names, &calls);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_mpi_event_sum = {
	.name = "mpi_event_sum",
	.display = "MPI Event Summary",
	.summary = "time in calls of MPI by function",
	.help = "How long ranks were inside MPI, by function. Source is the kind of call: p2p "
		"(between two), coll (collective), start_wait (requests), rma (one-sided), io "
		"(files), other. The time of a call is also that of waiting for others.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(mpi_call),
	.is_default = true,
	.run = run,
};
