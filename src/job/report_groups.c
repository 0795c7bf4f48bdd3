/*
 * groups: ranks that behave alike.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Group", .kind = LULL_OUT_ID, .doc = "as in ranks" },
	{ .name = "Ranks", .kind = LULL_OUT_INT, .doc = "how many" },
	{ .name = "Such as", .kind = LULL_OUT_ID, .doc = "the first of them" },
	{ .name = "Compute", .kind = LULL_OUT_PERCENT, .doc = "mean of their shares" },
	{ .name = "Wait", .kind = LULL_OUT_PERCENT, .doc = "for the last rank" },
	{ .name = "Move", .kind = LULL_OUT_PERCENT, .doc = "bytes move" },
	{ .name = "Bubble", .kind = LULL_OUT_PERCENT, .doc = "in sends and receives" },
	{ .name = "Copy", .kind = LULL_OUT_PERCENT, .doc = "copies" },
	{ .name = "Idle", .kind = LULL_OUT_PERCENT, .doc = "nothing runs" },
	{ .name = "Late", .kind = LULL_OUT_TEXT, .doc = "whether others wait for them" },
	{ .name = "Cause",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the most common first cause of these ranks",
	  .is_wanted = true },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job *job = options->job;
	const struct lull_job_group *all = job->groups.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < job->groups.n; i++) {
		const struct lull_job_rank *first = lull_vec_get(&job->ranks, all[i].first_ix);

		lull_out_row(out);
		lull_out_i64(out, (i64)i);
		lull_out_i64(out, all[i].n);
		lull_out_i64(out, first->rank);
		lull_out_f64(out, all[i].compute * 100);
		lull_out_f64(out, all[i].wait * 100);
		lull_out_f64(out, all[i].transfer * 100);
		lull_out_f64(out, all[i].bubble * 100);
		lull_out_f64(out, all[i].copy * 100);
		lull_out_f64(out, all[i].idle * 100);
		lull_out_text(out, all[i].is_late ? "yes" : "no");
		lull_out_text(out, lull_job_cause_id(all[i].cause));
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_groups = {
	.name = "groups",
	.display = "Groups of Ranks",
	.summary = "ranks that behave alike, at most five groups",
	.help = "Ranks whose steps have the same parts, so that jobs of thousands of ranks stay "
		"readable.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.run = run,
};
