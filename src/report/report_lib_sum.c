/*
 * lib_sum: time in calls of watched libraries by function.
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
	struct lull_lib_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, calls->reader, LULL_TABLE_lib_call, calls->options->from_ns,
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

const struct lull_report lull_report_lib_sum = {
	.name = "lib_sum",
	.display = "Library Call Summary",
	.summary = "time in calls of traced libraries by function",
	.help = "How long threads were inside functions that --trace-library names. Nested calls "
		"count for both functions, so the shares are of the sum, not of the wall time. A "
		"call that an exception or longjmp left counts until the next traced call on "
		"that thread.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(lib_call),
	.is_default = true,
	.run = run,
};
