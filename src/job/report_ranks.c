/*
 * ranks: what each rank of a job does with its steps.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "its number in the job" },
	{ .name = "Host", .kind = LULL_OUT_TEXT, .doc = "where it ran", .is_spare = true },
	{ .name = "Group",
	  .kind = LULL_OUT_ID,
	  .doc = "ranks with the same number behave alike",
	  .is_spare = true },
	{ .name = "Steps", .kind = LULL_OUT_INT, .doc = "steady ones", .is_spare = true },
	{ .name = "Step", .kind = LULL_OUT_NS, .decimals = 1, .doc = "mean length" },
	{ .name = "Compute", .kind = LULL_OUT_PERCENT, .doc = "share of the time with kernels" },
	{ .name = "Overlapped",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "of the time: communication while kernels run, a part of Compute" },
	{ .name = "Exposed",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "communication without kernels: Wait, Move and Bubble" },
	{ .name = "Wait", .kind = LULL_OUT_PERCENT, .doc = "in collectives, for the last rank" },
	{ .name = "Move",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "transfer in collectives, sends and receives" },
	{ .name = "Bubble", .kind = LULL_OUT_PERCENT, .doc = "waiting in sends and receives" },
	{ .name = "Copy",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "copies with nothing else at the same time" },
	{ .name = "Idle", .kind = LULL_OUT_PERCENT, .doc = "nothing runs" },
	{ .name = "Late",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "after the others, mean of the steps; negative: before" },
	{ .name = "Cause", .kind = LULL_OUT_TEXT, .doc = "the first cause in its own report" },
	{ .name = "File", .kind = LULL_OUT_TEXT, .doc = "its report", .is_spare = true },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job_rank *all = options->job->ranks.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < options->job->ranks.n; i++) {
		const struct lull_job_rank *k = &all[i];

		lull_out_row(out);
		lull_out_i64(out, k->rank);
		lull_out_text(out, *k->host ? k->host : NULL);
		lull_out_i64(out, k->group);
		lull_out_i64(out, k->n_steps);
		lull_out_f64(out, k->step_ns);
		lull_out_f64(out, lull_job_percent(k->compute_ns, k->window_ns));
		lull_out_f64(out, lull_job_percent(lull_job_overlapped_ns(k), k->window_ns));
		lull_out_f64(out, lull_job_percent(lull_job_exposed_ns(k), k->window_ns));
		lull_out_f64(out, lull_job_percent(k->wait_ns, k->window_ns));
		lull_out_f64(out, lull_job_percent(k->transfer_ns, k->window_ns));
		lull_out_f64(out, lull_job_percent(k->bubble_ns, k->window_ns));
		lull_out_f64(out, lull_job_percent(k->copy_ns, k->window_ns));
		lull_out_f64(out, lull_job_percent(k->idle_ns, k->window_ns));
		lull_out_f64(out, k->n_steps ? (f64)k->late_ns / k->n_steps : 0);
		lull_out_text(out, lull_job_cause_id(k->first));
		lull_out_text(out, k->file);
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_ranks = {
	.name = "ranks",
	.display = "Ranks",
	.summary = "how each rank spends its steps",
	.help = "The time of each rank's steady steps in parts: computing, exposed communication "
		"(waiting for the last rank, transfer, waiting in sends and receives), copies, "
		"idle. Shares are of its own time and add up to 100. Overlapped communication "
		"runs at the same time as kernels and costs nothing by itself.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.run = run,
};
