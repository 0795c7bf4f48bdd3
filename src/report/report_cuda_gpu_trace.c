/*
 * cuda_gpu_trace: everything the devices did, one by one.
 */
#include "base/time.h"
#include "model/names.h"
#include "report/gpu.h"

/* A number that only kernels, or only copies, have. */
#define SPARE(text, kind_, meaning)                                           \
	{                                                                     \
		.name = text, .kind = kind_, .doc = meaning, .is_spare = true \
	}
#define SPARE_MB(text, meaning)                                                                    \
	{                                                                                          \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3, .doc = meaning, \
		.is_spare = true                                                                   \
	}

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "start on the device" },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "how long it took" },
	{ .name = "CorrId",
	  .kind = LULL_OUT_ID,
	  .doc = "correlation id of the call that launched it" },
	SPARE("GrdX", LULL_OUT_INT, "blocks of the grid"),
	SPARE("GrdY", LULL_OUT_INT, "blocks of the grid"),
	SPARE("GrdZ", LULL_OUT_INT, "blocks of the grid"),
	SPARE("BlkX", LULL_OUT_INT, "threads of a block"),
	SPARE("BlkY", LULL_OUT_INT, "threads of a block"),
	SPARE("BlkZ", LULL_OUT_INT, "threads of a block"),
	SPARE("Reg/Trd", LULL_OUT_INT, "registers per thread"),
	SPARE_MB("StcSMem", "static shared memory of the kernel"),
	SPARE_MB("DymSMem", "dynamic shared memory, set at launch"),
	{ .name = "Bytes",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "size of a copy or memset; 1 MB is a million bytes" },
	{ .name = "Throughput",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB/s",
	  .decimals = 3,
	  .doc = "bytes times the whole number of durations in a second",
	  .is_spare = true },
	SPARE("SrcMemKd", LULL_OUT_TEXT, "memory it was copied from"),
	SPARE("DstMemKd", LULL_OUT_TEXT, "memory it was copied to, or that was set"),
	SPARE("Device", LULL_OUT_TEXT, "name and number of the device"),
	SPARE("Ctx", LULL_OUT_ID, "CUDA context"),
	SPARE("GreenCtx", LULL_OUT_ID, "green context; not recorded"),
	{ .name = "Strm", .kind = LULL_OUT_ID, .doc = "stream" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "kernel or operation", .is_kernel = true },
};

/* What put_launch() and put_memory() fill. */
#define N_KERNEL_CELLS 9
#define N_MEMORY_CELLS 4

static void put_launch(struct lull_out *out, const struct lull_launch_row *launch)
{
	lull_out_i64(out, launch->grid_x);
	lull_out_i64(out, launch->grid_y);
	lull_out_i64(out, launch->grid_z);
	lull_out_i64(out, launch->block_x);
	lull_out_i64(out, launch->block_y);
	lull_out_i64(out, launch->block_z);
	lull_out_i64(out, launch->registers);
	lull_out_f64(out, launch->static_shared_bytes / LULL_GPU_MB);
	lull_out_f64(out, launch->dynamic_shared_bytes / LULL_GPU_MB);
}

static void put_memory(struct lull_out *out, const struct lull_work *work)
{
	bool is_copy = work->kind == LULL_WORK_MEMCPY;

	lull_out_f64(out, (f64)work->size_bytes / LULL_GPU_MB);
	/* Whole durations in a second: what people compare their numbers with. */
	if (work->dur_ns)
		lull_out_f64(out, (f64)work->size_bytes * (f64)(LULL_NS_PER_S / work->dur_ns) /
					  LULL_GPU_MB);
	else
		lull_out_skip(out);
	lull_out_text(out, is_copy ? lull_names_memory(work->src_kind) : NULL);
	lull_out_text(out, lull_names_memory(work->dst_kind));
}

static void skip(struct lull_out *out, int n_cells)
{
	while (n_cells-- > 0)
		lull_out_skip(out);
}

/* Cells that many rows have in common. */
struct memos {
	struct lull_out_memo launch; /* by launch: how a kernel was launched */
	struct lull_out_memo stream; /* by lane */
	struct lull_out_memo name;   /* by name of the kernel */
};

static void put_what(struct lull_out *out, struct lull_kernels *kernels,
		     const struct lull_work *work, struct memos *memos)
{
	if (work->kind != LULL_WORK_KERNEL) {
		skip(out, N_KERNEL_CELLS);
		if (work->kind & LULL_WORK_MEMORY)
			put_memory(out, work);
		else
			skip(out, N_MEMORY_CELLS);
		return;
	}
	if (lull_out_recall(out, &memos->launch, work->what))
		return;
	put_launch(out, lull_kernels_launch(kernels, work));
	skip(out, N_MEMORY_CELLS);
	lull_out_remember(out, &memos->launch, work->what);
}

static void put_stream(struct lull_out *out, struct lull_reader *r, u32 lane, struct memos *memos)
{
	struct lull_lane_row stream;

	if (lull_out_recall(out, &memos->stream, lane))
		return;
	stream = lull_gpu_lane(r, lane);
	lull_gpu_device_name(lull_out_text_begin(out), r, stream.device);
	lull_out_text_end(out);
	lull_out_i64(out, stream.context_id);
	lull_gpu_put_green(out, r, &stream);
	lull_out_i64(out, stream.stream_id);
	lull_out_remember(out, &memos->stream, lane);
}

static void put_name(struct lull_out *out, struct lull_kernels *kernels,
		     const struct lull_work *work, struct memos *memos)
{
	u32 name;

	if (work->kind != LULL_WORK_KERNEL) {
		lull_gpu_operation(lull_out_text_begin(out), work->kind, work->what);
		lull_out_text_end(out);
		return;
	}
	name = lull_kernels_name(kernels, work);
	if (lull_out_recall(out, &memos->name, name))
		return;
	lull_out_text(out, lull_kernels_text(kernels, name));
	lull_out_remember(out, &memos->name, name);
}

static void put_work(struct lull_out *out, struct lull_kernels *kernels,
		     const struct lull_work *work, struct memos *memos)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)work->start_ns);
	lull_out_i64(out, (i64)work->dur_ns);
	lull_out_i64(out, work->correlation);
	put_what(out, kernels, work, memos);
	put_stream(out, kernels->reader, work->lane, memos);
	put_name(out, kernels, work, memos);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_work_order order;
	const struct lull_work *work;
	struct lull_kernels kernels;
	struct memos memos;

	(void)err;
	lull_kernels_init(&kernels, r, options);
	lull_out_memo_init(&memos.launch);
	lull_out_memo_init(&memos.stream);
	lull_out_memo_init(&memos.name);
	lull_work_order_begin(&order, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL | LULL_WORK_WANT_BYTES,
			      lull_report_window(options));
	while ((work = lull_work_order_next(&order))) {
		if (lull_report_covers(options, work->start_ns, work->dur_ns))
			put_work(out, &kernels, work, &memos);
	}
	lull_work_order_end(&order);
	lull_out_memo_release(&memos.launch);
	lull_out_memo_release(&memos.stream);
	lull_out_memo_release(&memos.name);
	lull_kernels_release(&kernels);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_trace = {
	.name = "cuda_gpu_trace",
	.old_name = "gputrace",
	.display = "CUDA GPU Trace",
	.summary = "each kernel, copy and memset",
	.help = "All work of the devices, by start. A graph that was recorded as a whole is one "
		"row. Arguments as in cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED_ANY_WORK,
	.is_long = true,
	.sorted_by = 1,
	.run = run,
};
