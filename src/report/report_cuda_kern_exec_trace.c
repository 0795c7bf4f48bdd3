/*
 * cuda_kern_exec_trace: each kernel with the call that launched it.
 */
#include <stdlib.h>

#include "base/sort.h"
#include "model/link.h"
#include "model/order.h"
#include "report/gpu.h"
#include "report/lanes.h"

static const struct lull_out_column columns[] = {
	{ .name = "API Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "start of the launching call" },
	{ .name = "API Dur", .kind = LULL_OUT_NS, .doc = "how long the call took" },
	{ .name = "Queue Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "end of the call, if the kernel started later",
	  .is_spare = true },
	{ .name = "Queue Dur",
	  .kind = LULL_OUT_NS,
	  .doc = "from the end of the call to the start of the kernel" },
	{ .name = "Kernel Start",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "start of the kernel" },
	{ .name = "Kernel Dur", .kind = LULL_OUT_NS, .doc = "how long the kernel ran" },
	{ .name = "Total Dur",
	  .kind = LULL_OUT_NS,
	  .doc = "from the start of the call to the end of call and kernel" },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "DevId", .kind = LULL_OUT_ID, .doc = "device", .is_spare = true },
	{ .name = "API Function", .kind = LULL_OUT_TEXT, .doc = "the call", .is_spare = true },
	{ .name = "GridXYZ", .kind = LULL_OUT_TEXT, .doc = "blocks of the grid", .is_spare = true },
	{ .name = "BlockXYZ",
	  .kind = LULL_OUT_TEXT,
	  .doc = "threads of a block",
	  .is_spare = true },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .doc = "kernel", .is_kernel = true },
};

/*
 * Rows come in the order of the calls, which are read by time and need not be kept. What is kept
 * are the kernels: those of a call are a list, found by their key.
 */
struct kernel {
	u64 start_ns;
	u64 dur_ns;
	u32 lane;
	u32 launch;
	u32 process;
	u32 next; /* at first its id; then the kernel before it with the same key: index + 1 */
};

/* A call that launched kernels. */
struct caller {
	struct lull_call call;
	u64 key;
};

/* One row. */
struct launched {
	struct lull_call call;
	u32 ix; /* of the kernel */
};

struct trace {
	struct lull_reader *reader;
	struct lull_out *out;
	struct lull_kernels names;
	struct lull_vec kernels;     /* struct kernel */
	struct lull_link_index last; /* the last kernel: index + 1 */
	const struct lull_lane_row *lanes;
	struct lull_vec together; /* struct launched: of calls that begin together */
};

static void collect(struct trace *t, const struct lull_report_options *options)
{
	struct lull_work_cursor c;
	struct lull_work work;
	struct kernel *kernels;

	lull_work_begin(&c, t->reader, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL,
			lull_report_window(options));
	while (lull_work_next(&c, &work)) {
		if (!lull_report_covers(options, work.start_ns, work.dur_ns))
			continue;
		lull_link_index_measure(&t->last, lull_link_work_key(&work));
		*(struct kernel *)lull_vec_push(&t->kernels) = (struct kernel){
			.start_ns = work.start_ns,
			.dur_ns = work.dur_ns,
			.lane = work.lane,
			.launch = work.what,
			.process = work.process,
			.next = work.correlation,
		};
	}
	lull_work_end(&c);
	lull_link_index_settle(&t->last);
	kernels = t->kernels.at;
	for (size_t i = 0; i < t->kernels.n; i++) {
		u64 key = lull_link_key(kernels[i].process, kernels[i].next);
		u32 *place = lull_link_index_add(&t->last, key);

		kernels[i].next = place ? *place : 0;
		if (place)
			*place = (u32)i + 1;
	}
}

/* The calls with kernels. */
static bool fill(void *ctx, void *element, const void *block, size_t i)
{
	const struct lull_cuda_call_cols *cols = block;
	struct trace *t = ctx;
	u32 lane = cols->lane[i];
	u64 key = lull_link_key(lull_work_process(t->lanes, 0, lane), cols->correlation[i]);
	const u32 *place = lull_link_index_find(&t->last, key);

	if (!place || !*place)
		return false;
	*(struct caller *)element = (struct caller){
		.call = { .start_ns = cols->start_ns[i],
			  .dur_ns = cols->dur_ns[i],
			  .lane = lane,
			  .name = cols->name[i] },
		.key = key,
	};
	return true;
}

/* Of calls with the same key the one that counts is first. */
static int by_call(const void *a, const void *b)
{
	const struct caller *x = a, *y = b;

	return lull_link_is_first(lull_call_span(&y->call), lull_call_span(&x->call)) -
	       lull_link_is_first(lull_call_span(&x->call), lull_call_span(&y->call));
}

/* Of calls that begin together. */
static int by_kernel(const void *a, const void *b, void *ctx)
{
	const struct launched *x = a, *y = b;
	const struct kernel *kernels = ctx, *k = &kernels[x->ix], *l = &kernels[y->ix];

	if (k->start_ns != l->start_ns)
		return k->start_ns < l->start_ns ? -1 : 1;
	if (k->dur_ns != l->dur_ns)
		return k->dur_ns < l->dur_ns ? -1 : 1;
	return (x->ix > y->ix) - (x->ix < y->ix);
}

static void put_times(struct lull_out *out, const struct lull_call *call,
		      const struct lull_work *kernel)
{
	u64 queue_ns = lull_link_queue_ns(call, kernel);

	lull_out_row(out);
	lull_out_i64(out, (i64)call->start_ns);
	lull_out_i64(out, (i64)call->dur_ns);
	if (queue_ns) {
		lull_out_i64(out, (i64)(call->start_ns + call->dur_ns));
		lull_out_i64(out, (i64)queue_ns);
	} else {
		lull_out_skip(out);
		lull_out_skip(out);
	}
	lull_out_i64(out, (i64)kernel->start_ns);
	lull_out_i64(out, (i64)kernel->dur_ns);
	lull_out_i64(out, (i64)lull_link_total_ns(call, kernel));
}

/* Cells that many rows have in common. */
struct memos {
	struct lull_out_memo thread; /* by lane */
	struct lull_out_memo device; /* by lane */
	struct lull_out_memo call;   /* by name of the call */
	struct lull_out_memo shape;  /* by launch */
	struct lull_out_memo name;   /* by name of the kernel */
};

static void put_thread(struct lull_out *out, struct lull_reader *r, u32 lane, struct memos *memos)
{
	struct lull_lane_ids ids;

	if (lull_out_recall(out, &memos->thread, lane))
		return;
	ids = lull_lanes_ids(r, lane);
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_remember(out, &memos->thread, lane);
}

static void put_shape(struct lull_out *out, const struct lull_kernels *kernels,
		      const struct lull_work *kernel, struct memos *memos)
{
	const struct lull_launch_row *launch;

	if (lull_out_recall(out, &memos->shape, kernel->what))
		return;
	launch = lull_kernels_launch(kernels, kernel);
	lull_gpu_put_shape(out, (u32[]){ launch->grid_x, launch->grid_y, launch->grid_z });
	lull_gpu_put_shape(out, (u32[]){ launch->block_x, launch->block_y, launch->block_z });
	lull_out_remember(out, &memos->shape, kernel->what);
}

static void put_names(struct lull_out *out, struct lull_kernels *names,
		      const struct lull_call *call, const struct lull_work *kernel,
		      struct memos *memos)
{
	u32 name = lull_kernels_name(names, kernel);

	put_thread(out, names->reader, call->lane, memos);
	if (!lull_out_recall(out, &memos->device, kernel->lane)) {
		lull_out_i64(out, lull_gpu_device_id(names->reader, kernel->lane));
		lull_out_remember(out, &memos->device, kernel->lane);
	}
	if (!lull_out_recall(out, &memos->call, call->name)) {
		lull_gpu_put_call(out, names->reader, call->name);
		lull_out_remember(out, &memos->call, call->name);
	}
	put_shape(out, names, kernel, memos);
	if (!lull_out_recall(out, &memos->name, name)) {
		lull_out_text(out, lull_kernels_text(names, name));
		lull_out_remember(out, &memos->name, name);
	}
}

static void init_memos(struct memos *memos)
{
	lull_out_memo_init(&memos->thread);
	lull_out_memo_init(&memos->device);
	lull_out_memo_init(&memos->call);
	lull_out_memo_init(&memos->shape);
	lull_out_memo_init(&memos->name);
}

static void release_memos(struct memos *memos)
{
	lull_out_memo_release(&memos->thread);
	lull_out_memo_release(&memos->device);
	lull_out_memo_release(&memos->call);
	lull_out_memo_release(&memos->shape);
	lull_out_memo_release(&memos->name);
}

/* The rows of calls that begin together. */
static void put_rows(struct trace *t, struct memos *memos)
{
	const struct kernel *kernels = t->kernels.at;
	const struct launched *l = t->together.at;

	if (t->together.n > 1)
		lull_sort_r(t->together.at, t->together.n, sizeof(*l), by_kernel, t->kernels.at);
	for (size_t i = 0; i < t->together.n; i++, l++) {
		const struct lull_work kernel = {
			.kind = LULL_WORK_KERNEL,
			.start_ns = kernels[l->ix].start_ns,
			.dur_ns = kernels[l->ix].dur_ns,
			.lane = kernels[l->ix].lane,
			.what = kernels[l->ix].launch,
		};

		put_times(t->out, &l->call, &kernel);
		put_names(t->out, &t->names, &l->call, &kernel, memos);
	}
	t->together.n = 0;
}

/* A key has its kernels until its first call takes them. */
static void add_kernels(struct trace *t, const struct caller *caller)
{
	u32 *place = lull_link_index_find(&t->last, caller->key);

	for (u32 k = *place; k; k = ((struct kernel *)t->kernels.at)[k - 1].next)
		*(struct launched *)lull_vec_push(&t->together) =
			(struct launched){ caller->call, k - 1 };
	*place = 0;
}

static void put_all(struct trace *t)
{
	static const char *const wanted[] = { "start_ns", "dur_ns",	 "lane",
					      "name",	  "correlation", NULL };
	const struct lull_order_source source = {
		.reader = t->reader,
		.table = LULL_TABLE_cuda_call,
		.window = LULL_SPAN_ALL,
		.columns = wanted,
		.elem_bytes = sizeof(struct caller),
		.fill = fill,
		.compare = by_call,
		.ctx = t,
	};
	const struct caller *caller;
	struct lull_order order;
	struct memos memos;
	u64 start_ns = 0;

	init_memos(&memos);
	lull_order_begin(&order, &source);
	while ((caller = lull_order_next(&order))) {
		if (caller->call.start_ns != start_ns)
			put_rows(t, &memos);
		start_ns = caller->call.start_ns;
		add_kernels(t, caller);
	}
	put_rows(t, &memos);
	lull_order_end(&order);
	release_memos(&memos);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct trace t = { .reader = r, .out = out };
	size_t n;

	(void)err;
	lull_link_index_init(&t.last, r);
	t.lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	lull_kernels_init(&t.names, r, options);
	lull_vec_init(&t.kernels, sizeof(struct kernel));
	lull_vec_init(&t.together, sizeof(struct launched));
	collect(&t, options);
	put_all(&t);
	lull_vec_release(&t.together);
	lull_vec_release(&t.kernels);
	lull_kernels_release(&t.names);
	lull_link_index_release(&t.last);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_kern_exec_trace = {
	.name = "cuda_kern_exec_trace",
	.old_name = "kernexectrace",
	.display = "CUDA Kernel Launch & Exec Time Trace",
	.summary = "each kernel with the call that launched it",
	.help = "Every kernel whose launching call was recorded, by the start of the call: how "
		"long the call took, how long the kernel waited afterwards, how long it ran. A "
		"kernel that started before its call returned did not wait. Arguments as in "
		"cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(kernel) | LULL_NEED(cuda_call),
	.empty = "no kernel has a recorded launching call",
	.is_long = true,
	.run = run,
};
