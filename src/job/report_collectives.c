/*
 * collectives: what ranks exchange, by operation, communicator and size.
 */
#include "job/job_report.h"

static const struct lull_out_column columns[] = {
	{ .name = "Operation", .kind = LULL_OUT_TEXT, .doc = "what" },
	{ .name = "Communicator",
	  .kind = LULL_OUT_TEXT,
	  .doc = "its name, if it has one",
	  .is_spare = true },
	{ .name = "Ranks", .kind = LULL_OUT_ID, .doc = "of the communicator" },
	{ .name = "Below",
	  .kind = LULL_OUT_BYTES,
	  .doc = "sizes are less than this, and at least half" },
	{ .name = "Instances", .kind = LULL_OUT_INT, .doc = "on all ranks, in steady steps" },
	{ .name = "Avg", .kind = LULL_OUT_NS, .decimals = 1, .doc = "time of one on a rank" },
	{ .name = "Wait", .kind = LULL_OUT_PERCENT, .doc = "of that: waiting for the last rank" },
	{ .name = "Transfer", .kind = LULL_OUT_NS, .decimals = 1, .doc = "the rest: transfer" },
	{ .name = "Hidden",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "of its time: with kernels at the same time" },
	{ .name = "Algorithm",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "GB/s",
	  .decimals = 3,
	  .doc = "bytes divided by transfer time" },
	{ .name = "Bus",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "GB/s",
	  .decimals = 3,
	  .doc = "bus bandwidth, as nccl-tests computes it" },
};

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_job_kind *all = options->job->kinds.at;

	(void)r;
	(void)err;
	for (size_t i = 0; i < options->job->kinds.n; i++) {
		const struct lull_job_kind *k = &all[i];
		f64 n = k->n ? (f64)k->n : 1;

		lull_out_row(out);
		lull_out_text(out, k->name);
		lull_out_text(out, *k->comm_name ? k->comm_name : NULL);
		if (k->n_ranks)
			lull_out_i64(out, k->n_ranks);
		else
			lull_out_skip(out);
		if (k->size_bytes)
			lull_out_i64(out, (i64)(1ULL << k->size_class));
		else
			lull_out_skip(out);
		lull_out_i64(out, (i64)k->n);
		lull_out_f64(out, (f64)k->dur_ns / n);
		lull_out_f64(out, lull_job_percent(k->wait_ns, k->dur_ns));
		lull_out_f64(out, (f64)k->transfer_ns / n);
		lull_out_f64(out, 100 - lull_job_percent(k->exposed_ns, k->dur_ns));
		if (!k->timed_bytes)
			continue;
		lull_out_f64(out, lull_job_algorithm_bandwidth(k));
		lull_out_f64(out, lull_job_bus_bandwidth(k));
	}
	return LULL_OK;
}

const struct lull_report lull_job_report_collectives = {
	.name = "collectives",
	.display = "Collectives",
	.summary = "collectives of the ranks: waiting, transfer, bandwidth, overlap",
	.help = "A collective on a rank consists of waiting until the last rank has arrived, and "
		"then transfer. By operation, size of the communicator and size of the message.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.is_default = true,
	.empty = "no collective was recorded",
	.run = run,
};
