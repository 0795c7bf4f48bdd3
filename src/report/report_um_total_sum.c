/*
 * um_total_sum: all migrations and faults of unified memory.
 */
#include "report/gpu.h"
#include "report/um.h"

static const struct lull_out_column columns[] = {
	{ .name = "Total HtoD Migration Size",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "moved from host to device" },
	{ .name = "Total DtoH Migration Size",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "moved from device to host" },
	{ .name = "Total CPU Page Faults", .kind = LULL_OUT_INT, .doc = "faults of CPUs" },
	{ .name = "Total GPU PageFaults", .kind = LULL_OUT_INT, .doc = "faults of devices" },
	{ .name = "Minimum Virtual Address",
	  .kind = LULL_OUT_TEXT,
	  .align = LULL_OUT_RIGHT,
	  .doc = "smallest address of them" },
	{ .name = "Maximum Virtual Address",
	  .kind = LULL_OUT_TEXT,
	  .align = LULL_OUT_RIGHT,
	  .doc = "largest address of them" },
};

struct totals {
	struct lull_um_sum sum;
	u64 min_address, max_address;
	bool has_any;
};

static void add(void *ctx, const struct lull_um_event *event)
{
	struct totals *totals = ctx;

	lull_um_add(&totals->sum, event);
	totals->has_any = true;
	if (event->address < totals->min_address)
		totals->min_address = event->address;
	if (event->address > totals->max_address)
		totals->max_address = event->address;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct totals totals = { .min_address = UINT64_MAX };

	(void)err;
	lull_um_each(r, options, add, &totals);
	if (!totals.has_any)
		return LULL_OK;
	lull_out_row(out);
	lull_out_f64(out, (f64)totals.sum.htod_bytes / LULL_GPU_MB);
	lull_out_f64(out, (f64)totals.sum.dtoh_bytes / LULL_GPU_MB);
	lull_out_i64(out, (i64)totals.sum.n_cpu_faults);
	lull_out_i64(out, (i64)totals.sum.n_gpu_faults);
	lull_um_put_address(out, totals.min_address);
	lull_um_put_address(out, totals.max_address);
	return LULL_OK;
}

const struct lull_report lull_report_um_total_sum = {
	.name = "um_total_sum",
	.old_name = "unifiedmemorytotals",
	.display = "Unified Memory Totals Summary",
	.summary = "all migrations and page faults of unified memory",
	.help = "How much unified memory moved between host and devices, the number of page "
		"faults of CPUs and devices, and the range of addresses.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(um_event),
	.is_default = true,
	.run = run,
};
