/*
 * osrt_sum: time in calls of the C library by function.
 */
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Num Calls"),
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "function" },
};

struct calls {
	struct lull_reader *reader;
	const struct lull_report_options *options;
};

static void scan(void *ctx, struct lull_sum *sum)
{
	const struct calls *calls = ctx;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, calls->reader, LULL_TABLE_oscall, calls->options->from_ns,
			 calls->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "name");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (lull_report_covers(calls->options, cols.start_ns[i], cols.dur_ns[i]))
				lull_sum_add(sum, lull_sum_group(sum, cols.name[i]),
					     cols.dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct calls *calls = ctx;

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

const struct lull_report lull_report_osrt_sum = {
	.name = "osrt_sum",
	.display = "OS Runtime Summary",
	.summary = "time in calls of the C library by function",
	.help = "How long threads were inside calls of the C library that may block, by function. "
		"Only "
		"calls longer than the threshold of the recording are there. Calls of different "
		"threads "
		"overlap, and so do a call and the one it makes, so the shares are of the sum, not "
		"of "
		"the wall time.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(oscall),
	.is_default = true,
	.run = run,
};
