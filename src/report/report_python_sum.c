/*
 * python_sum: Python samples by function.
 */
#include "model/callpath.h"
#include "report/functions.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Self",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of all counted samples in the function itself" },
	{ .name = "Total",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of those in it and in what it calls" },
	{ .name = "Self Samples", .kind = LULL_OUT_INT, .doc = "samples in the function itself" },
	{ .name = "Total Samples",
	  .kind = LULL_OUT_INT,
	  .doc = "samples in it and in what it calls; recursion counts once" },
	{ .name = "Function", .kind = LULL_OUT_TEXT, .doc = "name of the function" },
	{ .name = "Location",
	  .kind = LULL_OUT_TEXT,
	  .doc = "source file and line with most of its samples" },
};

static void scan(struct lull_callpath *c, const struct lull_report_options *options)
{
	bool has_idle = lull_report_has_arg(options, "idle");
	struct lull_pysample_cols cols;
	struct lull_cursor cursor;
	size_t n;

	lull_cursor_init(&cursor, c->reader, LULL_TABLE_pysample, options->from_ns, options->to_ns);
	lull_cursor_want(&cursor, "start_ns");
	lull_cursor_want(&cursor, "stack");
	lull_cursor_want(&cursor, "is_idle");
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if ((has_idle || !cols.is_idle[i]) &&
			    lull_report_covers(options, cols.start_ns[i], 0))
				lull_callpath_add(c, cols.stack[i], 1);
		}
	}
	lull_cursor_release(&cursor);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_function *function;
	struct lull_callpath c;

	(void)err;
	lull_callpath_init(&c, r);
	scan(&c, options);
	lull_callpath_finish(&c);
	function = c.functions.at;
	for (size_t i = 0; i < c.functions.n; i++, function++) {
		lull_out_row(out);
		lull_function_put_weight(out, &c, function);
		lull_function_put_name(out, &c, function);
		lull_function_put_place(out, &c, function);
	}
	lull_callpath_release(&c);
	return LULL_OK;
}

const struct lull_report lull_report_python_sum = {
	.name = "python_sum",
	.display = "Python Function Summary",
	.summary = "Python samples by function",
	.help = "Which Python functions threads were in while they ran. Samples of threads that "
		"did not run "
		"on a CPU since the sample before are left out; python_sum:idle counts them too, "
		"which "
		"shows where threads wait.",
	.args = "idle",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(pysample),
	.is_default = true,
	.empty = "all Python samples are of threads that did not run; try python_sum:idle",
	.run = run,
};
