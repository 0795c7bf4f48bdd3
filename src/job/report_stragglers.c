/*
 * stragglers: ranks that others wait for.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Rank", .kind = LULL_OUT_ID, .doc = "that is late" },
	{ .name = "Host", .kind = LULL_OUT_TEXT, .doc = "where it runs", .is_spare = true },
	{ .name = "Since", .kind = LULL_OUT_ID, .doc = "step; empty: always" },
	{ .name = "Late", .kind = LULL_OUT_NS, .decimals = 1, .doc = "after the others, a step" },
	{ .name = "Steps", .kind = LULL_OUT_PERCENT, .doc = "of the steps since then" },
	{ .name = "Cause", .kind = LULL_OUT_TEXT, .doc = "its own; empty: not known" },
	{ .name = "Excess",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "per step: time of that cause, more than on other ranks" },
	{ .name = "Evidence", .kind = LULL_OUT_TEXT, .doc = "the evidence" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job *job = options->job;
	const struct lull_job_straggler *all = job->stragglers.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < job->stragglers.n; i++) {
		const struct lull_job_rank *rank = lull_vec_get(&job->ranks, all[i].rank_ix);

		lull_out_row(out);
		lull_out_i64(out, rank->rank);
		lull_out_text(out, *rank->host ? rank->host : NULL);
		if (all[i].is_always)
			lull_out_skip(out);
		else
			lull_out_i64(out, all[i].since);
		lull_out_f64(out, all[i].late_ns);
		lull_out_f64(out, all[i].share * 100);
		lull_out_text(out, lull_job_cause_id(all[i].cause));
		lull_out_f64(out, all[i].excess_ns);
		lull_out_text(out, all[i].evidence);
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_stragglers = {
	.name = "stragglers",
	.display = "Stragglers",
	.summary = "ranks that others wait for, since when and why",
	.help = "Ranks that arrive at their collectives well after the others in most steps, the "
		"worst first. The cause is the one on which they spend more time than the others.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.empty = "no rank is late in most steps",
	.run = run,
};
