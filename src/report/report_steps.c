/*
 * steps: each step of the program's loop.
 */
#include <stdlib.h>

#include "base/sort.h"
#include "model/step.h"
#include "report/lanes.h"
#include "report/report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Step", .kind = LULL_OUT_ID, .doc = "number that the program gave to the step" },
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "begin" },
	{ .name = "Duration",
	  .kind = LULL_OUT_NS,
	  .doc = "wall time until its end or the next step; of a step that was found, from the "
		 "end of the work of earlier ones to the end of its own" },
	LULL_LANES_COLUMNS,
	{ .name = "GPU Busy",
	  .kind = LULL_OUT_NS,
	  .doc = "time in it with work on any device of the process" },
	{ .name = "GPU Idle", .kind = LULL_OUT_NS, .doc = "the rest of it" },
	{ .name = "Launches",
	  .kind = LULL_OUT_INT,
	  .doc = "kernels and graphs that started on a device in it" },
	{ .name = "Moved",
	  .kind = LULL_OUT_BYTES,
	  .doc = "size of the copies and memsets that started in it" },
	{ .name = "Marked By",
	  .kind = LULL_OUT_TEXT,
	  .doc = "where the steps that the recording counts are not used: what they were found "
		 "by" },
};

/* Those after the thread, which are there only if devices worked, and then if steps are found. */
#define N_DEVICE_COLUMNS 4
#define N_FOUND_COLUMNS	 1

static int by_start(const void *a, const void *b)
{
	const struct lull_step *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static void put_step(struct lull_out *out, struct lull_reader *r, const struct lull_step *step,
		     bool has_work, bool are_found)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)step->number);
	lull_out_i64(out, (i64)step->start_ns);
	lull_out_i64(out, (i64)step->dur_ns);
	lull_lanes_put(out, r, step->lane);
	if (!has_work)
		return;
	lull_out_i64(out, (i64)step->busy_ns);
	lull_out_i64(out, (i64)(step->dur_ns - step->busy_ns));
	lull_out_i64(out, (i64)step->n_launches);
	lull_out_i64(out, (i64)step->size_bytes);
	if (are_found)
		lull_out_text(out, lull_rounds_word(step->source));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_steps steps;
	const struct lull_step *step;

	(void)err;
	lull_steps_init_any(&steps, r, lull_report_window(options));
	if (!steps.are_found)
		lull_out_drop_last(out, N_FOUND_COLUMNS);
	if (!steps.has_work)
		lull_out_drop_last(out, N_DEVICE_COLUMNS);
	if (steps.all.n)
		lull_sort(steps.all.at, steps.all.n, sizeof(struct lull_step), by_start);
	step = steps.all.at;
	for (size_t i = 0; i < steps.all.n; i++)
		put_step(out, r, &step[i], steps.has_work, steps.are_found);
	lull_steps_release(&steps);
	return LULL_OK;
}

const struct lull_report lull_report_steps = {
	.name = "steps",
	.display = "Steps",
	.summary = "each step of the program's loop",
	.help = "Number, start and wall time of every step, by start. If devices worked, also "
		"what the devices of the thread's process did in it. They are the steps of "
		"`lull why`, from mark to mark on the CPU.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.n_optional = N_DEVICE_COLUMNS + N_FOUND_COLUMNS,
	.needs_any = LULL_NEED_STEPS,
	.empty = LULL_STEPS_NONE,
	.run = run,
};
