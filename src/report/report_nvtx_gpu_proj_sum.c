/*
 * nvtx_gpu_proj_sum: time that the work of ranges took on the devices, by name.
 */
#include "report/gpu.h"
#include "report/nvtx.h"
#include "report/projection.h"

static const struct lull_out_column columns[] = {
	{ .name = "Range", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>" },
	{ .name = "Style", .kind = LULL_OUT_TEXT, .doc = "PushPop or StartEnd", .is_spare = true },
	{ .name = "Total Proj Time",
	  .kind = LULL_OUT_NS,
	  .doc = "sum over the ranges of the time from their first work to the end of their last" },
	{ .name = "Total Range Time", .kind = LULL_OUT_NS, .doc = "sum of their own durations" },
	{ .name = "Range Instances", .kind = LULL_OUT_INT, .doc = "ranges that launched work" },
	{ .name = "Proj Avg",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "mean of the projected time",
	  .is_spare = true },
	{ .name = "Proj Med", .kind = LULL_OUT_NS, .decimals = 1, .doc = "median of it" },
	{ .name = "Proj Min", .kind = LULL_OUT_NS, .doc = "shortest", .is_spare = true },
	{ .name = "Proj Max", .kind = LULL_OUT_NS, .doc = "longest" },
	{ .name = "Proj StdDev",
	  .kind = LULL_OUT_NS,
	  .decimals = 1,
	  .doc = "standard deviation of the sample",
	  .is_spare = true },
	{ .name = "Total GPU Ops", .kind = LULL_OUT_INT, .doc = "work launched in them" },
	{ .name = "Avg GPU Ops",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "work launched in one",
	  .is_spare = true },
	{ .name = "Avg Range Lvl",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "mean level in the tree of ranges",
	  .is_spare = true },
	{ .name = "Avg Num Child",
	  .kind = LULL_OUT_FLOAT,
	  .decimals = 1,
	  .doc = "mean number of ranges directly inside",
	  .is_spare = true },
};

struct group {
	u32 name;
	u32 domain;
	u32 is_startend;
};

/* What is added up besides the projected time; by number of the group. */
struct totals {
	u64 range_ns;
	u64 n_works;
	u64 levels;
	u64 n_children;
};

struct sums {
	struct lull_reader *reader;
	struct lull_out *out;
	struct lull_projection projection;
	const struct lull_label_row *labels;
	struct lull_intern groups; /* struct group; its number is the key */
	struct lull_vec totals;	   /* struct totals */
};

static u32 group_of(struct sums *s, const struct lull_nest_range *range)
{
	struct group group = { .is_startend = !!(range->flags & LULL_RANGE_START_END) };

	if (range->label) {
		group.name = s->labels[range->label - 1].name;
		group.domain = s->labels[range->label - 1].domain;
	}
	return lull_intern_add(&s->groups, &group, sizeof(group));
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct sums *s = ctx;
	const struct lull_projected *projected = s->projection.ranges;

	for (size_t i = 0; i < s->projection.nest.ranges.n; i++) {
		const struct lull_nest_range *range =
			lull_nest_get(&s->projection.nest, (u32)i + 1);

		if (projected[i].n_works)
			lull_sum_add(sum, lull_sum_group(sum, group_of(s, range)),
				     projected[i].last_ns - projected[i].first_ns);
	}
}

static void add_totals(struct sums *s)
{
	lull_vec_extend(&s->totals, s->groups.offsets.n);
	for (size_t i = 0; i < s->projection.nest.ranges.n; i++) {
		const struct lull_nest_range *range =
			lull_nest_get(&s->projection.nest, (u32)i + 1);
		struct totals *totals;

		if (!s->projection.ranges[i].n_works)
			continue;
		totals = lull_vec_get(&s->totals, group_of(s, range));
		totals->range_ns += range->dur_ns;
		totals->n_works += s->projection.ranges[i].n_works;
		totals->levels += range->level;
		totals->n_children += range->n_children;
	}
}

static void put_row(void *ctx, const struct lull_sum_group *sums)
{
	const struct sums *s = ctx;
	const struct group *group = lull_intern_get(&s->groups, (u32)sums->key);
	const struct totals *totals = lull_vec_get(&s->totals, sums->key);
	struct lull_str name = LULL_STR_INIT;

	lull_nvtx_name(&name, s->reader, group->name, group->domain);
	lull_out_row(s->out);
	lull_out_text(s->out, lull_str_text(&name));
	lull_out_text(s->out, lull_nvtx_style(group->is_startend));
	lull_out_i64(s->out, (i64)sums->total_ns);
	lull_out_i64(s->out, (i64)totals->range_ns);
	lull_out_i64(s->out, (i64)sums->n);
	lull_sum_put_spread(s->out, sums);
	lull_out_i64(s->out, (i64)totals->n_works);
	lull_out_f64(s->out, (f64)totals->n_works / (f64)sums->n);
	lull_out_f64(s->out, (f64)totals->levels / (f64)sums->n);
	lull_out_f64(s->out, (f64)totals->n_children / (f64)sums->n);
	lull_str_release(&name);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct sums s = { .reader = r, .out = out };
	struct lull_sum sum;
	size_t n;

	(void)err;
	s.labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	lull_projection_init(&s.projection, r, options);
	lull_intern_init(&s.groups);
	lull_vec_init(&s.totals, sizeof(struct totals));
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	add_totals(&s);
	lull_sum_each(&sum, put_row, &s);
	lull_sum_release(&sum);
	lull_vec_release(&s.totals);
	lull_intern_release(&s.groups);
	lull_projection_release(&s.projection);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_gpu_proj_sum = {
	.name = "nvtx_gpu_proj_sum",
	.display = "NVTX GPU Projection Summary",
	.summary = "time of the device work of ranges by name",
	.help = "As nvtx_gpu_proj_trace, summed by name and style. Ranges that launched no work "
		"are not counted.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range) | LULL_NEED(cuda_call),
	.needs_any = LULL_NEED_ANY_WORK,
	.empty = "no work was launched inside a range",
	.sorted_by = 3,
	.page = { .tab = "ranges", .label = "on the device", .names = "Range", .is_join = true },
	.run = run,
};
