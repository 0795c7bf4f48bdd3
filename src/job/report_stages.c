/*
 * stages: a pipeline, stage by stage.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Stage", .kind = LULL_OUT_ID, .doc = "from where batches enter" },
	{ .name = "Ranks", .kind = LULL_OUT_INT, .doc = "replicas of it" },
	{ .name = "Compute", .kind = LULL_OUT_NS, .decimals = 1, .doc = "a step, mean" },
	{ .name = "Share", .kind = LULL_OUT_PERCENT, .doc = "of the step" },
	{ .name = "Bubble",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "per step: waiting in sends and receives with nothing else at the same time" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job_stage *all = options->job->stages.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < options->job->stages.n; i++) {
		lull_out_row(out);
		lull_out_i64(out, (i64)i);
		lull_out_i64(out, all[i].n);
		lull_out_f64(out, all[i].compute_ns);
		lull_out_f64(out, all[i].share * 100);
		lull_out_f64(out, all[i].bubble_ns);
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_stages = {
	.name = "stages",
	.display = "Pipeline Stages",
	.summary = "what each stage of a pipeline computes and how long it waits",
	.help = "Stages are found from the sends and receives between ranks. If one stage computes "
		"more than the others, they wait for it.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.empty = "ranks do not send to each other in a chain",
	.run = run,
};
