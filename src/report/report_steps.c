/*
 * steps: each step of the program's loop.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "report/lanes.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Step", .kind = LULL_OUT_ID, .doc = "number the program gave it" },
	{ .name = "Start", .kind = LULL_OUT_NS, .doc = "begin" },
	{ .name = "Duration",
	  .kind = LULL_OUT_NS,
	  .doc = "wall time until its end or the next step" },
	LULL_LANES_COLUMNS,
};

static int by_start(const void *a, const void *b)
{
	const struct lull_step_row *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static void collect(struct lull_vec *steps, struct lull_reader *r,
		    const struct lull_report_options *options)
{
	struct lull_step_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_step, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (!lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct lull_step_row *)lull_vec_push(steps) = (struct lull_step_row){
				.start_ns = cols.start_ns[i],
				.dur_ns = cols.dur_ns[i],
				.lane = cols.lane[i],
				.number = cols.number[i],
			};
		}
	}
	lull_cursor_release(&c);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_step_row *step;
	struct lull_vec steps;

	(void)err;
	lull_vec_init(&steps, sizeof(struct lull_step_row));
	collect(&steps, r, options);
	if (steps.n)
		qsort(steps.at, steps.n, sizeof(struct lull_step_row), by_start);
	step = steps.at;
	for (size_t i = 0; i < steps.n; i++, step++) {
		lull_out_row(out);
		lull_out_i64(out, (i64)step->number);
		lull_out_i64(out, (i64)step->start_ns);
		lull_out_i64(out, (i64)step->dur_ns);
		lull_lanes_put(out, r, step->lane);
	}
	lull_vec_release(&steps);
	return LULL_OK;
}

const struct lull_report lull_report_steps = {
	.name = "steps",
	.display = "Steps",
	.summary = "each step of the program's loop",
	.help = "Number, begin and wall time of every step, by begin.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(step),
	.run = run,
};
