/*
 * cuda_kern_exec_sum: how long launching, waiting and running took, by kernel and thread.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/gpu.h"
#include "report/lanes.h"

/* The five statistics of one measure; T, A, Q and K stand for the four measures. */
#define MEASURE_COLUMNS(letter, what)                                        \
	{ .name = letter "Avg",                                              \
	  .kind = LULL_OUT_NS,                                               \
	  .decimals = 1,                                                     \
	  .doc = "mean of " what,                                            \
	  .is_spare = true },                                                \
		{ .name = letter "Med",                                      \
		  .kind = LULL_OUT_NS,                                       \
		  .decimals = 1,                                             \
		  .doc = "median of " what },                                \
		{ .name = letter "Min",                                      \
		  .kind = LULL_OUT_NS,                                       \
		  .doc = "shortest of " what,                                \
		  .is_spare = true },                                        \
		{ .name = letter "Max",                                      \
		  .kind = LULL_OUT_NS,                                       \
		  .doc = "longest of " what,                                 \
		  .is_spare = true },                                        \
	{                                                                    \
		.name = letter "StdDev", .kind = LULL_OUT_NS, .decimals = 1, \
		.doc = "standard deviation of " what, .is_spare = true       \
	}

static const struct lull_out_column columns[] = {
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread that launched" },
	{ .name = "DevId", .kind = LULL_OUT_ID, .doc = "device", .is_spare = true },
	{ .name = "Count", .kind = LULL_OUT_INT, .doc = "kernels" },
	{ .name = "QCount", .kind = LULL_OUT_INT, .doc = "kernels that waited after the call" },
	MEASURE_COLUMNS("T", "the total: from the start of the call to the end of call and kernel"),
	MEASURE_COLUMNS("A", "the call"),
	MEASURE_COLUMNS("Q", "the wait, of those that waited"),
	MEASURE_COLUMNS("K", "the kernel"),
	{ .name = "API Name", .kind = LULL_OUT_TEXT, .doc = "the call", .is_spare = true },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .doc = "kernel", .is_kernel = true },
};

/* In the order of the columns. The key of a sum is the number of a group times this, + measure. */
enum measure { TOTAL, CALL, QUEUE, KERNEL, N_MEASURES };

struct group {
	u32 lane; /* thread */
	u32 device_id;
	u32 call; /* string id */
	u32 name; /* of the kernel */
};

/* Groups that were met, so that most of them are found without hashing. */
struct known {
	struct group group;
	u32 number;
	bool is_used;
};

#define N_KNOWN 4096u

struct execs {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_out *out;
	struct lull_sum *sum;
	struct lull_kernels kernels;
	struct lull_link link;
	struct lull_intern groups; /* struct group */
	struct known *known;	   /* N_KNOWN of them */
	u32 *device_ids;	   /* by lane */
};

static u32 group_of(struct execs *e, const struct lull_call *call, const struct lull_work *kernel)
{
	struct group group = {
		.lane = call->lane,
		.device_id = e->device_ids[kernel->lane],
		.call = call->name,
		.name = lull_kernels_name(&e->kernels, kernel),
	};
	struct known *known = &e->known[(group.name * 31 + group.call * 7 + group.lane) % N_KNOWN];

	if (!known->is_used || memcmp(&known->group, &group, sizeof(group)) != 0)
		*known = (struct known){ group, lull_intern_add(&e->groups, &group, sizeof(group)),
					 true };
	return known->number;
}

/* The first of the sums of a group; the others follow. All exist, also if no kernel of it waits. */
static u32 sums_ix(struct lull_sum *sum, u32 group)
{
	u32 first = group * N_MEASURES;

	for (u32 m = 0; first + N_MEASURES > sum->groups.n && m < N_MEASURES; m++)
		lull_sum_group(sum, first + m);
	return first;
}

static void add(struct execs *e, struct lull_sum *sum, const struct lull_work *kernel)
{
	const struct lull_call *call = lull_link_find(&e->link, kernel);
	u64 queue_ns;
	u32 first;

	if (!call)
		return;
	first = sums_ix(sum, group_of(e, call, kernel));
	queue_ns = lull_link_queue_ns(call, kernel);
	lull_sum_add(sum, first + TOTAL, lull_link_total_ns(call, kernel));
	lull_sum_add(sum, first + CALL, call->dur_ns);
	if (queue_ns)
		lull_sum_add(sum, first + QUEUE, queue_ns);
	lull_sum_add(sum, first + KERNEL, kernel->dur_ns);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct execs *e = ctx;
	struct lull_work_cursor c;
	struct lull_work kernel;

	lull_work_begin(&c, e->reader, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL,
			lull_report_window(e->options));
	while (lull_work_next(&c, &kernel)) {
		if (lull_report_covers(e->options, kernel.start_ns, kernel.dur_ns))
			add(e, sum, &kernel);
	}
	lull_work_end(&c);
}

static const struct lull_sum_group *sums_of(const struct execs *e, u64 key)
{
	return lull_vec_get(&e->sum->groups, lull_sum_group(e->sum, key));
}

/* Called for each measure of each group; the totals make the rows and their order. */
static void put_row(void *ctx, const struct lull_sum_group *sums)
{
	struct execs *e = ctx;
	const struct group *group = lull_intern_get(&e->groups, (u32)(sums->key / N_MEASURES));
	struct lull_lane_ids ids = lull_lanes_ids(e->reader, group->lane);

	if (sums->key % N_MEASURES != TOTAL)
		return;
	lull_out_row(e->out);
	lull_out_i64(e->out, ids.pid);
	lull_out_i64(e->out, ids.tid);
	lull_out_i64(e->out, group->device_id);
	lull_out_i64(e->out, (i64)sums->n);
	lull_out_i64(e->out, (i64)sums_of(e, sums->key + QUEUE)->n);
	for (unsigned m = 0; m < N_MEASURES; m++)
		lull_sum_put_spread(e->out, sums_of(e, sums->key + m));
	lull_gpu_put_call(e->out, e->reader, group->call);
	lull_out_text(e->out, lull_kernels_text(&e->kernels, group->name));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_sum sum;
	struct execs e = { .reader = r, .options = options, .out = out, .sum = &sum };

	(void)err;
	lull_kernels_init(&e.kernels, r, options);
	lull_link_init(&e.link, r);
	lull_intern_init(&e.groups);
	e.known = lull_alloc(N_KNOWN, sizeof(*e.known));
	e.device_ids = lull_gpu_device_ids(r);
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &e);
	lull_sum_each(&sum, put_row, &e);
	lull_sum_release(&sum);
	lull_intern_release(&e.groups);
	free(e.known);
	free(e.device_ids);
	lull_link_release(&e.link);
	lull_kernels_release(&e.kernels);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_kern_exec_sum = {
	.name = "cuda_kern_exec_sum",
	.old_name = "kernexecsum",
	.display = "CUDA Kernel Launch & Exec Time Summary",
	.summary = "launching, waiting and running by kernel and thread",
	.help = "How long launching calls took (A), how long kernels waited after them (Q), how "
		"long they ran (K), and all of it (T), by thread, device, call and kernel; "
		"largest total first. Kernels that started before their call returned are not in "
		"Q. Arguments as in cuda_gpu_kern_sum.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(kernel) | LULL_NEED(cuda_call),
	.empty = "no kernel has a recorded launching call",
	.page = { .tab = "kernels",
		  .label = "with queue times",
		  .names = "Kernel Name",
		  .is_join = true },
	.run = run,
};
