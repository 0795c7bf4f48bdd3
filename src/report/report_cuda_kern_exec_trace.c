/*
 * cuda_kern_exec_trace: each kernel with the call that launched it.
 */
#include "report/gpu.h"
#include "report/lanes.h"

static const struct lull_out_column columns[] = {
	{ .name = "API Start", .kind = LULL_OUT_NS, .doc = "begin of the launching call" },
	{ .name = "API Dur", .kind = LULL_OUT_NS, .doc = "how long the call took" },
	{ .name = "Queue Start",
	  .kind = LULL_OUT_NS,
	  .doc = "end of the call, if the kernel began later",
	  .is_spare = true },
	{ .name = "Queue Dur",
	  .kind = LULL_OUT_NS,
	  .doc = "from the end of the call to the begin of the kernel" },
	{ .name = "Kernel Start", .kind = LULL_OUT_NS, .doc = "begin of the kernel" },
	{ .name = "Kernel Dur", .kind = LULL_OUT_NS, .doc = "how long the kernel ran" },
	{ .name = "Total Dur",
	  .kind = LULL_OUT_NS,
	  .doc = "from the begin of the call to the end of both" },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "DevId", .kind = LULL_OUT_ID, .doc = "device", .is_spare = true },
	{ .name = "API Function", .kind = LULL_OUT_TEXT, .doc = "the call", .is_spare = true },
	{ .name = "GridXYZ", .kind = LULL_OUT_TEXT, .doc = "blocks of the grid", .is_spare = true },
	{ .name = "BlockXYZ",
	  .kind = LULL_OUT_TEXT,
	  .doc = "threads of a block",
	  .is_spare = true },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .doc = "kernel" },
};

struct launched {
	const struct lull_call *call;
	struct lull_work kernel;
};

static int by_start(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->call->start_ns != y->call->start_ns)
		return x->call->start_ns < y->call->start_ns ? -1 : 1;
	if (x->kernel.start_ns != y->kernel.start_ns)
		return x->kernel.start_ns < y->kernel.start_ns ? -1 : 1;
	return (x->kernel.dur_ns > y->kernel.dur_ns) - (x->kernel.dur_ns < y->kernel.dur_ns);
}

static void collect(struct lull_vec *all, struct lull_reader *r, const struct lull_link *link,
		    const struct lull_report_options *options)
{
	struct launched launched;
	struct lull_work_cursor c;
	struct lull_vec spare;

	lull_work_begin(&c, r, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL, lull_report_window(options));
	while (lull_work_next(&c, &launched.kernel)) {
		launched.call = lull_link_find(link, &launched.kernel);
		if (launched.call &&
		    lull_report_covers(options, launched.kernel.start_ns, launched.kernel.dur_ns))
			lull_vec_add(all, &launched, 1);
	}
	lull_work_end(&c);
	/* Work and calls are in order on each stream and thread: there is not much to merge. */
	lull_vec_init(&spare, sizeof(launched));
	lull_order_sort(all, &spare, by_start);
	lull_vec_release(&spare);
}

static void put_times(struct lull_out *out, const struct launched *l)
{
	u64 queue_ns = lull_link_queue_ns(l->call, &l->kernel);

	lull_out_row(out);
	lull_out_i64(out, (i64)l->call->start_ns);
	lull_out_i64(out, (i64)l->call->dur_ns);
	if (queue_ns) {
		lull_out_i64(out, (i64)(l->call->start_ns + l->call->dur_ns));
		lull_out_i64(out, (i64)queue_ns);
	} else {
		lull_out_skip(out);
		lull_out_skip(out);
	}
	lull_out_i64(out, (i64)l->kernel.start_ns);
	lull_out_i64(out, (i64)l->kernel.dur_ns);
	lull_out_i64(out, (i64)lull_link_total_ns(l->call, &l->kernel));
}

static void put_names(struct lull_out *out, struct lull_kernels *kernels, const struct launched *l)
{
	const struct lull_launch_row *launch = lull_kernels_launch(kernels, &l->kernel);
	struct lull_lane_ids ids = lull_lanes_ids(kernels->reader, l->call->lane);

	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_i64(out, lull_gpu_device_id(kernels->reader, l->kernel.lane));
	lull_gpu_put_call(out, kernels->reader, l->call->name);
	lull_gpu_put_shape(out, (u32[]){ launch->grid_x, launch->grid_y, launch->grid_z });
	lull_gpu_put_shape(out, (u32[]){ launch->block_x, launch->block_y, launch->block_z });
	lull_out_text(out, lull_kernels_text(kernels, lull_kernels_name(kernels, &l->kernel)));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct launched *launched;
	struct lull_kernels kernels;
	struct lull_link link;
	struct lull_vec all;

	(void)err;
	lull_kernels_init(&kernels, r, options);
	lull_link_init(&link, r);
	lull_vec_init(&all, sizeof(struct launched));
	collect(&all, r, &link, options);
	launched = all.at;
	for (size_t i = 0; i < all.n; i++) {
		put_times(out, &launched[i]);
		put_names(out, &kernels, &launched[i]);
	}
	lull_vec_release(&all);
	lull_link_release(&link);
	lull_kernels_release(&kernels);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_kern_exec_trace = {
	.name = "cuda_kern_exec_trace",
	.old_name = "kernexectrace",
	.display = "CUDA Kernel Launch & Exec Time Trace",
	.summary = "each kernel with the call that launched it",
	.help = "Every kernel whose launching call was recorded, by the begin of the call: how "
		"long "
		"the call took, how long the kernel waited afterwards, how long it ran. A kernel "
		"that began before its call returned did not wait. Arguments as in "
		"cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(kernel) | LULL_NEED(cuda_call),
	.empty = "no kernel has a launching call that was recorded",
	.is_long = true,
	.run = run,
};
