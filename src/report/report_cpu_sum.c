/*
 * cpu_sum: CPU time by function, from samples of native stacks.
 */
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
	{ .name = "Module", .kind = LULL_OUT_TEXT, .doc = "file that contains it" },
	{ .name = "Location",
	  .kind = LULL_OUT_TEXT,
	  .doc = "source file and line with most of its time",
	  .is_spare = true },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_functions functions = { .table = LULL_TABLE_sample,
						  .weight = "weight_ns",
						  .has_count = true,
						  .has_module = true };

	(void)err;
	lull_functions_put(r, out, options, &functions);
	return LULL_OK;
}

const struct lull_report lull_report_cpu_sum = {
	.name = "cpu_sum",
	.display = "CPU Function Summary",
	.summary = "CPU time by function",
	.help = "Where the CPU time went, estimated from samples: each stands for the CPU time "
		"since the previous one. Functions are distinguished by name and module; inlined "
		"functions are counted separately. Places without a name are one row for each "
		"module, [no symbol].",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(sample),
	.is_default = true,
	.sorted_by = 3,
	.run = run,
};
