/*
 * rank_steps: every step of every rank.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "which" },
	{ .name = "Step", .kind = LULL_OUT_ID, .doc = "of the job; empty: only this rank has it" },
	{ .name = "End", .kind = LULL_OUT_NS, .is_moment = true, .doc = "time of the job" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "the parts below add up to it" },
	{ .name = "Compute", .kind = LULL_OUT_NS, .doc = "kernels run" },
	{ .name = "Wait", .kind = LULL_OUT_NS, .doc = "for the last rank" },
	{ .name = "Move", .kind = LULL_OUT_NS, .doc = "bytes move" },
	{ .name = "Bubble", .kind = LULL_OUT_NS, .doc = "in sends and receives" },
	{ .name = "Copy", .kind = LULL_OUT_NS, .doc = "copies" },
	{ .name = "Idle", .kind = LULL_OUT_NS, .doc = "nothing runs" },
	{ .name = "Late", .kind = LULL_OUT_NS, .doc = "after the others; negative: before" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job *job = options->job;
	const struct lull_job_rank *all = job->ranks.at;
	u32 n;

	(void)r;
	(void)err;
	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_step *steps = lull_job_steps(job, &all[i], &n);

		for (u32 k = 0; k < n; k++) {
			lull_out_row(out);
			lull_out_i64(out, all[i].rank);
			if (steps[k].number < job->n_steps)
				lull_out_i64(out, steps[k].number + job->first_step);
			else
				lull_out_skip(out);
			lull_out_i64(out, steps[k].end_ns);
			lull_out_i64(out, (i64)steps[k].dur_ns);
			lull_out_i64(out, (i64)steps[k].compute_ns);
			lull_out_i64(out, (i64)steps[k].wait_ns);
			lull_out_i64(out, (i64)steps[k].transfer_ns);
			lull_out_i64(out, (i64)steps[k].bubble_ns);
			lull_out_i64(out, (i64)steps[k].copy_ns);
			lull_out_i64(out, (i64)steps[k].idle_ns);
			lull_out_i64(out, steps[k].late_ns);
		}
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_rank_steps = {
	.name = "rank_steps",
	.display = "Steps of Ranks",
	.summary = "every step of every rank: the heat map as numbers",
	.help = "One row for each rank and steady step, with the parts of its time.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_long = true,
	.empty = "no rank has steps",
	.run = run,
};
