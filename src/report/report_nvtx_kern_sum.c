/*
 * nvtx_kern_sum: time of kernels by the ranges in which they were launched.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "report/gpu.h"
#include "report/lanes.h"
#include "report/nvtx.h"
#include "report/waiting.h"

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
	{ .name = "Avg",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean duration",
	  .is_spare = true },
	{ .name = "Med", .kind = LULL_OUT_NS, .decimals = 1, .doc = "median duration" },
	{ .name = "Min", .kind = LULL_OUT_NS, .doc = "shortest", .is_spare = true },
	{ .name = "Max", .kind = LULL_OUT_NS, .doc = "longest" },
	{ .name = "StdDev",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "standard deviation of the sample",
	  .is_spare = true },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .doc = "kernel", .is_kernel = true },
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
	u32 label;
	u32 kernel;
	u32 lane;
	u32 style_1; /* 1 + whether it is start/end; 0: nothing is known */
	u32 number;
};

#define N_KNOWN 8192u

/*
 * Which groups a kernel belongs to: a path from the innermost range outwards. Later scans for the
 * medians need no calls and no ranges, only the path of each kernel.
 */
struct path {
	u32 before; /* path without the last group, 0 for none */
	u32 group;
};

/* Paths that were met; 0: nothing is known. */
struct known_path {
	u32 before;
	u32 group;
	u32 path;
};

/*
 * The ranges of a group. Those of one level on a thread follow each other, so as long as its
 * kernels come from one stream, the numbers of the ranges of a level only grow, and a new number is
 * a new range. Groups for which that does not hold are counted again, in a set.
 */
#define N_LEVELS 4

struct count {
	u32 n;
	u32 last[N_LEVELS]; /* number of the range, by level */
	u32 stream;	    /* lane */
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
	struct lull_waiting waiting;
	const struct lull_label_row *labels;
	struct lull_intern groups;	/* struct group; its number is the key */
	struct known *known;		/* N_KNOWN of them */
	struct lull_vec paths;		/* struct path by number - 1 */
	struct lull_map path_map;	/* path and group after it to path */
	struct known_path *known_paths; /* N_KNOWN of them */
	struct lull_sum by_path;
	struct lull_vec by_kernel; /* u32: path of each kernel, in the order of the cursor */
	struct lull_vec counts;	   /* struct count by number of the group */
	struct lull_map met;	   /* group and range, of groups that are counted again */
	enum counting counting;
};

/* Numbers of groups are those of their sums: both count from 0 as groups are met. */
static u32 new_group(struct sums *s, struct lull_sum *sum, const struct lull_nest_range *range,
		     u32 kernel)
{
	u32 number;

	struct group group = {
		.is_startend = !!(range->flags & LULL_RANGE_START_END),
		.lane = range->lane,
		.kernel = kernel,
	};

	if (range->label) {
		group.range_name = s->labels[range->label - 1].name;
		group.range_domain = s->labels[range->label - 1].domain;
	}
	number = lull_intern_add(&s->groups, &group, sizeof(group));
	if (number == s->counts.n) {
		lull_vec_push(&s->counts);
		lull_sum_group(sum, number);
	}
	return number;
}

static u32 group_of(struct sums *s, struct lull_sum *sum, const struct lull_nest_range *range,
		    u32 kernel)
{
	struct known *known = &s->known[(range->label * 131 + kernel * 7 + range->lane) % N_KNOWN];
	u32 style_1 = 1 + !!(range->flags & LULL_RANGE_START_END);

	if (known->label != range->label || known->kernel != kernel || known->lane != range->lane ||
	    known->style_1 != style_1)
		*known = (struct known){ range->label, kernel, range->lane, style_1,
					 new_group(s, sum, range, kernel) };
	return known->number;
}

static u32 new_path(struct sums *s, u32 before, u32 group)
{
	u32 *path = lull_map_add(&s->path_map, (u64)before << 32 | group, NULL);

	if (!*path) {
		*(struct path *)lull_vec_push(&s->paths) = (struct path){ before, group };
		*path = (u32)s->paths.n;
	}
	return *path;
}

static u32 path_of(struct sums *s, u32 before, u32 group)
{
	struct known_path *known = &s->known_paths[(before * 31 + group) % N_KNOWN];

	if (known->before != before || known->group != group || !known->path)
		*known = (struct known_path){ before, group, new_path(s, before, group) };
	return known->path;
}

static void count_by_number(struct count *count, u32 number, u32 level, u32 stream)
{
	u32 *last = &count->last[level < N_LEVELS ? level : 0];

	if (!count->n)
		count->stream = stream;
	if (count->stream != stream || level >= N_LEVELS || number < *last)
		count->is_mixed = true;
	count->n += number != *last;
	*last = number;
}

static void count_range(struct sums *s, u32 group, u32 number, u32 stream)
{
	struct count *count = (struct count *)s->counts.at + group;
	bool is_new;

	if (s->counting == BY_NUMBER) {
		count_by_number(count, number, lull_nest_get(&s->nest, number)->level, stream);
	} else if (count->is_mixed) {
		lull_map_add(&s->met, (u64)group << 32 | number, &is_new);
		count->n += is_new;
	}
}

/* The path of a kernel: the groups of all ranges around its call, which are counted. */
static u32 find(struct sums *s, struct lull_sum *sum, const struct lull_work *kernel)
{
	const struct lull_call *call = lull_link_find(&s->link, kernel);
	u32 name, lane, path = 0;
	struct lull_span span;

	if (!call)
		return 0;
	span = lull_call_span(call);
	lane = lull_waiting_lane(&s->waiting, call->lane, span);
	name = lull_kernels_name(&s->kernels, kernel);
	for (u32 number = lull_nest_find(&s->nest, lane, span); number;
	     number = lull_nest_outside(&s->nest, number, span)) {
		u32 group = group_of(s, sum, lull_nest_get(&s->nest, number), name);

		count_range(s, group, number, kernel->lane);
		if (s->counting == BY_SET)
			continue;
		path = path_of(s, path, group);
	}
	return path;
}

/* A kernel of this path, for each group of it. */
static void add_each(const struct sums *s, struct lull_sum *sum, u32 path, u64 dur_ns)
{
	const struct path *paths = s->paths.at;

	for (; path; path = paths[path - 1].before)
		lull_sum_add(sum, paths[path - 1].group, dur_ns);
}

/* The same in the first scan: kernels are summed by path, and paths by group at its end. */
static void add_path(struct sums *s, struct lull_sum *sum, u32 path, u64 dur_ns)
{
	u32 ix;

	if (!path)
		return;
	ix = lull_sum_group(&s->by_path, path);
	if (ix < LULL_SUM_MERGEABLE)
		lull_sum_add(&s->by_path, ix, dur_ns);
	else
		add_each(s, sum, path, dur_ns);
}

static void merge_paths(struct sums *s, struct lull_sum *sum)
{
	const struct lull_sum_group *of_path = s->by_path.groups.at;
	const struct path *paths = s->paths.at;

	for (u32 i = 0; i < s->by_path.groups.n && i < LULL_SUM_MERGEABLE; i++) {
		for (u32 path = (u32)of_path[i].key; path; path = paths[path - 1].before)
			lull_sum_merge(sum, paths[path - 1].group, &s->by_path, i);
	}
}

/* For the medians: the paths of all kernels are known. */
static void scan_again(const struct sums *s, struct lull_sum *sum)
{
	const u32 *paths = s->by_kernel.at;
	struct lull_kernel_cols cols;
	struct lull_cursor c;
	size_t n, ix = 0;

	lull_cursor_init(&c, s->reader, LULL_TABLE_kernel, s->options->from_ns, s->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n && ix < s->by_kernel.n; i++) {
			if (lull_report_covers(s->options, cols.start_ns[i], cols.dur_ns[i]))
				add_each(s, sum, paths[ix++], cols.dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct sums *s = ctx;
	struct lull_work_cursor c;
	struct lull_work kernel;
	u32 path;

	if (s->counting == NOT) {
		scan_again(s, sum);
		return;
	}
	lull_work_begin(&c, s->reader, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL,
			lull_report_window(s->options));
	while (lull_work_next(&c, &kernel)) {
		if (!lull_report_covers(s->options, kernel.start_ns, kernel.dur_ns))
			continue;
		path = find(s, sum, &kernel);
		if (s->counting == BY_NUMBER) {
			lull_vec_add(&s->by_kernel, &path, 1);
			add_path(s, sum, path, kernel.dur_ns);
		}
	}
	lull_work_end(&c);
	if (s->counting == BY_NUMBER) {
		merge_paths(s, sum);
		s->counting = NOT;
	}
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
	free(s->known_paths);
	lull_vec_release(&s->paths);
	lull_vec_release(&s->by_kernel);
	lull_map_release(&s->path_map);
	lull_sum_release(&s->by_path);
	lull_map_release(&s->met);
	lull_intern_release(&s->groups);
	lull_waiting_release(&s->waiting);
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
	lull_waiting_init(&s.waiting, r, &s.nest);
	s.labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	lull_intern_init(&s.groups);
	lull_map_init(&s.met);
	lull_vec_init(&s.counts, sizeof(struct count));
	s.known = lull_alloc(N_KNOWN, sizeof(*s.known));
	lull_map_init(&s.path_map);
	lull_sum_init(&s.by_path);
	lull_vec_init(&s.paths, sizeof(struct path));
	lull_vec_init(&s.by_kernel, sizeof(u32));
	s.known_paths = lull_alloc(N_KNOWN, sizeof(*s.known_paths));
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
	.help = "How long kernels ran that were launched inside ranges, by range, thread and "
		"kernel; largest total first. A kernel counts for every range around its "
		"launching call on the same thread; what PyTorch's autograd launches on threads of "
		"its own counts for the ranges of the thread that waits for it, such as "
		"torch:backward. The arguments base and mangled as in "
		"cuda_gpu_kern_sum.",
	.args = "base mangled",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range) | LULL_NEED(kernel) | LULL_NEED(cuda_call),
	.empty = "no kernel was launched inside a range",
	.sorted_by = 7,
	.page = { .tab = "kernels", .label = "by range", .names = "Kernel Name", .is_join = true },
	.run = run,
};
