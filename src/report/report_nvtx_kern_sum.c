/*
 * nvtx_kern_sum: time of kernels by the ranges in which they were launched.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/nvtx.h"

static const struct lull_out_column columns[] = {
	{ .name = "NVTX Range", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
	{ .name = "Style", .kind = LULL_OUT_TEXT, .doc = "PushPop or StartEnd", .is_spare = true },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "NVTX Inst",
	  .kind = LULL_OUT_INT,
	  .doc = "ranges of this name that launched the kernel" },
	{ .name = "Kern Inst", .kind = LULL_OUT_INT, .doc = "how often it ran" },
	{ .name = "Total Time", .kind = LULL_OUT_NS, .doc = "sum of the durations" },
	{ .name = "Avg", .kind = LULL_OUT_NS, .decimals = 1, .doc = "mean duration" },
	{ .name = "Med",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "median duration",
	  .is_spare = true },
	{ .name = "Min", .kind = LULL_OUT_NS, .doc = "shortest", .is_spare = true },
	{ .name = "Max", .kind = LULL_OUT_NS, .doc = "longest" },
	{ .name = "StdDev",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "standard deviation of the sample",
	  .is_spare = true },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .doc = "kernel" },
};

struct group {
	u32 range_name;
	u32 range_domain;
	u32 is_startend;
	u32 lane;
	u32 kernel;
};

/* Groups that were met, so that most of them are found without hashing. */
struct known {
	struct group group;
	u32 number;
	bool is_used;
};

#define N_KNOWN 8192u

/*
 * The ranges of a group. As long as its kernels come from one stream and one level of ranges, the
 * numbers of the ranges only grow, and a new number is a new range. Groups for which that does not
 * hold are counted again, in a set.
 */
struct count {
	u32 n;
	u32 last;   /* number of the range */
	u32 stream; /* lane */
	u32 level;
	bool is_mixed;
};

enum counting { NOT, BY_NUMBER, BY_SET };

struct sums {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_out *out;
	struct lull_kernels kernels;
	struct lull_link link;
	struct lull_nest nest;
	const struct lull_label_row *labels;
	struct lull_intern groups; /* struct group; its number is the key */
	struct known *known;	   /* N_KNOWN of them */
	struct lull_vec counts;	   /* struct count by number of the group */
	struct lull_map met;	   /* group and range, of groups that are counted again */
	enum counting counting;
};

static u32 group_of(struct sums *s, const struct lull_nest_range *range, u32 kernel)
{
	struct group group = {
		.is_startend = !!(range->flags & LULL_RANGE_START_END),
		.lane = range->lane,
		.kernel = kernel,
	};
	struct known *known = &s->known[(range->label * 131 + kernel * 7 + range->lane) % N_KNOWN];

	if (range->label) {
		group.range_name = s->labels[range->label - 1].name;
		group.range_domain = s->labels[range->label - 1].domain;
	}
	if (!known->is_used || memcmp(&known->group, &group, sizeof(group)) != 0)
		*known = (struct known){ group, lull_intern_add(&s->groups, &group, sizeof(group)),
					 true };
	return known->number;
}

static void count_by_number(struct count *count, u32 number, u32 level, u32 stream)
{
	if (!count->last) {
		count->stream = stream;
		count->level = level;
	}
	if (count->stream != stream || count->level != level || number < count->last)
		count->is_mixed = true;
	count->n += number != count->last;
	count->last = number;
}

static void count_range(struct sums *s, u32 group, u32 number, u32 stream)
{
	struct count *count;
	bool is_new;

	if (group >= s->counts.n)
		lull_vec_extend(&s->counts, group + 1 - s->counts.n);
	count = lull_vec_get(&s->counts, group);
	if (s->counting == BY_NUMBER) {
		count_by_number(count, number, lull_nest_get(&s->nest, number)->level, stream);
	} else if (s->counting == BY_SET && count->is_mixed) {
		lull_map_add(&s->met, (u64)group << 32 | number, &is_new);
		count->n += is_new;
	}
}

static void add(struct sums *s, struct lull_sum *sum, const struct lull_work *kernel)
{
	const struct lull_call *call = lull_link_find(&s->link, kernel);
	struct lull_span span;

	if (!call)
		return;
	span = lull_call_span(call);
	for (u32 number = lull_nest_find(&s->nest, call->lane, span); number;
	     number = lull_nest_outside(&s->nest, number, span)) {
		u32 group = group_of(s, lull_nest_get(&s->nest, number),
				     lull_kernels_name(&s->kernels, kernel));

		if (s->counting)
			count_range(s, group, number, kernel->lane);
		if (s->counting != BY_SET)
			lull_sum_add(sum, lull_sum_group(sum, group), kernel->dur_ns);
	}
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct sums *s = ctx;
	struct lull_work_cursor c;
	struct lull_work kernel;

	lull_work_begin(&c, s->reader, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL,
			lull_report_window(s->options));
	while (lull_work_next(&c, &kernel)) {
		if (lull_report_covers(s->options, kernel.start_ns, kernel.dur_ns))
			add(s, sum, &kernel);
	}
	lull_work_end(&c);
	if (s->counting == BY_NUMBER)
		s->counting = NOT;
}

/* Count the ranges of mixed groups. */
static void count_again(struct sums *s)
{
	struct count *counts = s->counts.at;
	bool has_any = false;

	for (size_t i = 0; i < s->counts.n; i++) {
		has_any |= counts[i].is_mixed;
		counts[i].n = counts[i].is_mixed ? 0 : counts[i].n;
	}
	s->counting = BY_SET;
	if (has_any)
		scan(s, NULL);
}

static void put_row(void *ctx, const struct lull_sum_group *sums)
{
	struct sums *s = ctx;
	const struct group *group = lull_intern_get(&s->groups, (u32)sums->key);
	struct lull_lane_ids ids = lull_lanes_ids(s->reader, group->lane);
	struct lull_str name = LULL_STR_INIT;

	lull_nvtx_name(&name, s->reader, group->range_name, group->range_domain);
	lull_out_row(s->out);
	lull_out_text(s->out, lull_str_text(&name));
	lull_out_text(s->out, lull_nvtx_style(group->is_startend));
	lull_out_i64(s->out, ids.pid);
	lull_out_i64(s->out, ids.tid);
	lull_out_i64(s->out, ((struct count *)lull_vec_get(&s->counts, sums->key))->n);
	lull_out_i64(s->out, (i64)sums->n);
	lull_out_i64(s->out, (i64)sums->total_ns);
	lull_sum_put_spread(s->out, sums);
	lull_out_text(s->out, lull_kernels_text(&s->kernels, group->kernel));
	lull_str_release(&name);
}

static void release(struct sums *s)
{
	lull_vec_release(&s->counts);
	free(s->known);
	lull_map_release(&s->met);
	lull_intern_release(&s->groups);
	lull_nest_release(&s->nest);
	lull_link_release(&s->link);
	lull_kernels_release(&s->kernels);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct sums s = { .reader = r, .options = options, .out = out };
	struct lull_sum sum;
	size_t n;

	(void)err;
	lull_kernels_init(&s.kernels, r, options);
	lull_link_init(&s.link, r);
	lull_nest_init(&s.nest, r, LULL_SPAN_ALL, LULL_NEST_ONE_THREAD);
	s.labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	lull_intern_init(&s.groups);
	lull_map_init(&s.met);
	lull_vec_init(&s.counts, sizeof(struct count));
	s.known = lull_alloc(N_KNOWN, sizeof(*s.known));
	s.counting = BY_NUMBER;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	count_again(&s);
	lull_sum_each(&sum, put_row, &s);
	lull_sum_release(&sum);
	release(&s);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_kern_sum = {
	.name = "nvtx_kern_sum",
	.old_name = "nvtxkernsum",
	.display = "NVTX Range Kernel Summary",
	.summary = "time of kernels by the ranges that launched them",
	.help = "How long kernels ran that were launched inside of ranges, by range, thread and "
		"kernel; largest total first. A kernel counts for every range around its launching "
		"call on the same thread. The arguments base and mangled as in cuda_gpu_kern_sum.",
	.args = "base mangled",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range) | LULL_NEED(kernel) | LULL_NEED(cuda_call),
	.empty = "no kernel was launched inside of a range",
	.sorted_by = 7,
	.run = run,
};
