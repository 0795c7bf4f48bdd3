/*
 * python_sum: Python samples by function.
 */
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

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	bool has_idle = lull_report_has_arg(options, "idle");
	const struct lull_functions functions = { .table = LULL_TABLE_pysample,
						  .skip = has_idle ? NULL : "is_idle" };

	(void)err;
	lull_functions_put(r, out, options, &functions);
	return LULL_OK;
}

const struct lull_report lull_report_python_sum = {
	.name = "python_sum",
	.display = "Python Function Summary",
	.summary = "Python samples by function",
	.help = "Which Python functions threads were in while they ran. Samples of threads that "
		"did not run on a CPU since the previous sample are left out; python_sum:idle "
		"counts them too, which shows where threads wait.",
	.args = "idle",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(pysample),
	.is_default = true,
	.empty = "all Python samples are of threads that did not run; try python_sum:idle",
	.sorted_by = 3,
	.page = { .tab = "ops", .label = "Python functions", .names = "Function" },
	.run = run,
};
