/*
 * communicators: the groups of ranks that exchange data, and what they seem to be for.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Groups", .kind = LULL_OUT_INT, .doc = "communicators of this kind" },
	{ .name = "Ranks", .kind = LULL_OUT_ID, .doc = "of each" },
	{ .name = "Such as", .kind = LULL_OUT_TEXT, .doc = "ranks of the first of them" },
	{ .name = "Per Step",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "operations of a rank in a step",
	  .is_spare = true },
	{ .name = "Moved", .kind = LULL_OUT_BYTES, .doc = "by a rank in a step" },
	{ .name = "Time",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "of a rank in a step, hidden or not" },
	{ .name = "Exposed",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "of that: no kernel at the same time" },
	{ .name = "Operations",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the most frequent first",
	  .is_spare = true },
	{ .name = "For",
	  .kind = LULL_OUT_TEXT,
	  .doc = "what it seems to be for; with ? it is a guess, without it is in its name",
	  .is_wanted = true },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "of the communicator", .is_spare = true },
};

static void put_row(struct lull_out *out, const struct lull_job_comm_kind *k)
{
	struct lull_str members = LULL_STR_INIT, ops = LULL_STR_INIT, role = LULL_STR_INIT;
	f64 n_steps = k->n_steps ? (f64)k->n_steps : 1;
	u64 n = 0;

	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		n += k->n[i];
	lull_job_comm_members(k, &members);
	lull_job_comm_ops(k, &ops);
	lull_job_comm_role(k, &role);
	lull_out_row(out);
	lull_out_i64(out, k->n_comms);
	lull_out_i64(out, k->n_ranks);
	lull_out_text(out, lull_str_text(&members));
	lull_out_f64(out, (f64)n / n_steps);
	if (k->size_bytes)
		lull_out_i64(out, (i64)((f64)k->size_bytes / n_steps));
	else
		lull_out_skip(out);
	lull_out_f64(out, (f64)k->dur_ns / n_steps);
	lull_out_f64(out, lull_job_percent(k->exposed_ns, k->dur_ns));
	lull_out_text(out, lull_str_text(&ops));
	lull_out_text(out, role.len ? lull_str_text(&role) : NULL);
	lull_out_text(out, *k->name ? k->name : NULL);
	lull_str_release(&members);
	lull_str_release(&ops);
	lull_str_release(&role);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job_comm_kind *all = options->job->comms.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < options->job->comms.n; i++)
		put_row(out, &all[i]);
	return LULL_OK;
}

const struct lull_report lull_job_report_communicators = {
	.name = "communicators",
	.display = "Groups That Exchange Data",
	.summary = "communicators by size and use: tensor, pipeline or data parallel?",
	.help = "NCCL's communicators in steady steps; those of the same size, the same operations "
		"and the same distance between their ranks are one row. What they are for is "
		"guessed: sends and receives are a pipeline; neighbouring ranks that exchange "
		"most often, where there are other groups, are tensor parallel; the rest are data "
		"parallel. A communicator whose name says it needs no guess.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.empty = "no communicator was recorded: record with -t nccl",
	.run = run,
};
