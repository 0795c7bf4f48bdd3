/*
 * step_sum: how long the steps of each loop took.
 */
#include "model/step.h"
#include "report/lanes.h"
#include "report/report.h"
#include "report/sum.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Steps"),
	LULL_LANES_COLUMNS,
	{ .name = "GPU Busy",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean time of a step with work on any device of the process" },
	{ .name = "GPU Idle", .kind = LULL_OUT_NS, .decimals = 1, .doc = "mean of the rest" },
	{ .name = "Launches",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "kernels and graphs that started on a device in a step, on average" },
	{ .name = "Moved",
	  .kind = LULL_OUT_BYTES,
	  .decimals = 1,
	  .doc = "size of the copies and memsets that started in a step, on average" },
	{ .name = "Marked By",
	  .kind = LULL_OUT_TEXT,
	  .doc = "where the steps that the recording counts are not used: what they were found "
		 "by" },
};

/* Those after the thread, which are there only if devices worked, and then if steps are found. */
#define N_DEVICE_COLUMNS 4
#define N_FOUND_COLUMNS	 1

struct loops {
	struct lull_reader *reader;
	struct lull_steps steps;
};

static void scan(void *ctx, struct lull_sum *sum)
{
	const struct loops *loops = ctx;
	const struct lull_step *step = loops->steps.all.at;

	for (size_t i = 0; i < loops->steps.all.n; i++, step++)
		lull_sum_add(sum, lull_sum_group(sum, step->lane), step->dur_ns);
}

/* Means over the steps of a group. */
static void put_device(struct lull_out *out, const struct loops *loops,
		       const struct lull_sum_group *group)
{
	const struct lull_step *step = loops->steps.all.at;
	enum lull_rounds_source source = LULL_ROUNDS_NONE;
	u64 busy_ns = 0, n_launches = 0, size_bytes = 0;
	f64 n = (f64)group->n;

	for (size_t i = 0; i < loops->steps.all.n; i++, step++) {
		if (step->lane != group->key)
			continue;
		source = step->source;
		busy_ns += step->busy_ns;
		n_launches += step->n_launches;
		size_bytes += step->size_bytes;
	}
	lull_out_f64(out, (f64)busy_ns / n);
	lull_out_f64(out, (f64)(group->total_ns - busy_ns) / n);
	lull_out_f64(out, (f64)n_launches / n);
	lull_out_f64(out, (f64)size_bytes / n);
	if (loops->steps.are_found)
		lull_out_text(out, lull_rounds_word(source));
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct loops *loops = ctx;

	lull_lanes_put(out, loops->reader, (u32)group->key);
	if (loops->steps.has_work)
		put_device(out, loops, group);
}

/* A first step of this many times the median is worth a word. */
#define LONG_FIRST 1.5

/* Say so if the first step of the loop with the most steps is far longer than the others. */
static void note_first(struct lull_out *out, const struct loops *loops, const struct lull_sum *sum)
{
	u32 lane = lull_steps_main_lane(&loops->steps);
	const struct lull_step *step = loops->steps.all.at;
	f64 median_ns = 0;

	for (size_t i = 0; i < sum->groups.n; i++) {
		const struct lull_sum_group *group = lull_vec_get(&sum->groups, i);

		if (group->key == lane)
			median_ns = group->median_ns;
	}
	for (size_t i = 0; i < loops->steps.all.n; i++, step++) {
		if (step->lane != lane)
			continue;
		if (median_ns > 0 && (f64)step->dur_ns > LONG_FIRST * median_ns)
			lull_str_addf(&out->note,
				      "The first step takes %.1f times the median: %s--steady "
				      "leaves warm-up out.",
				      (f64)step->dur_ns / median_ns,
				      loops->steps.has_work ? "`lull stats -r warm_up` says why, "
							    : "");
		return;
	}
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct loops loops = { .reader = r };
	struct lull_sum sum;

	(void)err;
	lull_steps_init_any(&loops.steps, r, lull_report_window(options));
	if (!loops.steps.are_found)
		lull_out_drop_last(out, N_FOUND_COLUMNS);
	if (!loops.steps.has_work)
		lull_out_drop_last(out, N_DEVICE_COLUMNS);
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &loops);
	lull_sum_write(&sum, out, put_names, &loops);
	/* Of a part of the recording, the first step is none of warm-up. */
	if (!options->from_ns)
		note_first(out, &loops, &sum);
	lull_sum_release(&sum);
	lull_steps_release(&loops.steps);
	return LULL_OK;
}

const struct lull_report lull_report_step_sum = {
	.name = "step_sum",
	.display = "Step Summary",
	.summary = "how long the steps of the program's loop took",
	.help = "The wall time of the steps, one row for each thread that counts steps. A median "
		"far below the mean says that a few steps are slow; the report `steps` says "
		"which. If devices worked, the last columns say what the devices of the thread's "
		"process did in a step. They are the steps of `lull why`, from mark to mark on "
		"the CPU, including the first ones. `Marked By` says how they were found. Finding "
		"them takes a while, so with more than 100,000 kernels it is done only if the "
		"report is given by name.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.n_optional = N_DEVICE_COLUMNS + N_FOUND_COLUMNS,
	.needs_any = LULL_NEED_STEPS,
	.needs_quick = LULL_NEED(step),
	.empty = LULL_STEPS_NONE,
	.is_default = true,
	.sorted_by = 2,
	.run = run,
};
