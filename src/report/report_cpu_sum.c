/*
 * cpu_sum: CPU time by function, from samples of native stacks.
 */
#include "model/callpath.h"
#include "report/functions.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Self",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of all CPU time spent in the function itself" },
	{ .name = "Total",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "share of all CPU time spent in it and in what it calls" },
	{ .name = "Self Time", .kind = LULL_OUT_NS, .doc = "CPU time in the function itself" },
	{ .name = "Total Time",
	  .kind = LULL_OUT_NS,
	  .doc = "CPU time in it and in what it calls; recursion counts once",
	  .is_spare = true },
	{ .name = "Samples",
	  .kind = LULL_OUT_INT,
	  .doc = "samples in the function itself",
	  .is_spare = true },
	{ .name = "Function", .kind = LULL_OUT_TEXT, .doc = "name, or address without symbols" },
	{ .name = "Module", .kind = LULL_OUT_TEXT, .doc = "file that holds it" },
	{ .name = "Location",
	  .kind = LULL_OUT_TEXT,
	  .doc = "source file and line with most of its time",
	  .is_spare = true },
};

static void scan(struct lull_callpath *c, const struct lull_report_options *options)
{
	struct lull_sample_cols cols;
	struct lull_cursor cursor;
	size_t n;

	lull_cursor_init(&cursor, c->reader, LULL_TABLE_sample, options->from_ns, options->to_ns);
	lull_cursor_want(&cursor, "start_ns");
	lull_cursor_want(&cursor, "stack");
	lull_cursor_want(&cursor, "weight_ns");
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (lull_report_covers(options, cols.start_ns[i], 0))
				lull_callpath_add(c, cols.stack[i], cols.weight_ns[i]);
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
		lull_out_i64(out, (i64)function->n_self);
		lull_function_put_name(out, &c, function);
		lull_function_put_module(out, &c, function);
		lull_function_put_place(out, &c, function);
	}
	lull_callpath_release(&c);
	return LULL_OK;
}

const struct lull_report lull_report_cpu_sum = {
	.name = "cpu_sum",
	.display = "CPU Function Summary",
	.summary = "CPU time by function",
	.help = "Where the CPU time went, estimated from samples: each stands for the CPU time "
		"since the "
		"one before it. Functions are told apart by name and module; inlined ones count "
		"as functions of their own.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(sample),
	.is_default = true,
	.run = run,
};
