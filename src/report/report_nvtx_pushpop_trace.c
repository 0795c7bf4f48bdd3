/*
 * nvtx_pushpop_trace: each push/pop range with its place in the tree of ranges.
 *
 * A thread has one stack of ranges for each NVTX domain, so ranges nest within a thread and a
 * domain. The file has them in the order of their ends and in blocks; they are collected and sorted
 * by start, with the outer one first where two begin together. Then the parent of a range is the
 * innermost range of the same stack that has not ended before it.
 */
#include <stdlib.h>

#include "base/map.h"
#include "report/lanes.h"
#include "report/nvtx.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .doc = "begin" },
	{ .name = "End", .kind = LULL_OUT_NS, .doc = "end", .is_spare = true },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "end minus begin" },
	{ .name = "DurChild",
	  .kind = LULL_OUT_NS,
	  .doc = "sum of the durations of its direct children",
	  .is_spare = true },
	{ .name = "DurNonChild",
	  .kind = LULL_OUT_NS,
	  .doc = "duration minus DurChild",
	  .is_spare = true },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "<domain>:<name>", .is_spare = true },
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },
	{ .name = "Lvl",
	  .kind = LULL_OUT_INT,
	  .doc = "ranges around it on the thread's stack of the domain" },
	{ .name = "NumChild",
	  .kind = LULL_OUT_INT,
	  .doc = "ranges directly inside it",
	  .is_spare = true },
	{ .name = "RangeId", .kind = LULL_OUT_ID, .doc = "1 to n in the order of Start" },
	{ .name = "ParentId",
	  .kind = LULL_OUT_ID,
	  .doc = "RangeId of the range around it, empty at level 0",
	  .is_spare = true },
	{ .name = "RangeStack",
	  .kind = LULL_OUT_TEXT,
	  .doc = "RangeIds from the outermost to this one",
	  .is_spare = true },
	{ .name = "NameTree",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the name behind \"--\" for each level" },
};

/* Deeper than this the column says only "deeper". */
#define DEPTH_DEEPER 255

struct range {
	u64 start_ns;
	u64 dur_ns;
	u64 child_ns;
	u32 lane;
	u32 label;
	u32 parent; /* RangeId, 0 for none */
	u32 n_children;
	u32 level;
	u8 depth; /* as recorded */
};

static void collect(struct lull_vec *ranges, struct lull_reader *r,
		    const struct lull_report_options *options)
{
	static const char *const wanted[] = { "start_ns", "dur_ns", "depth",
					      "lane",	  "label",  "flags" };
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_range, options->from_ns, options->to_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (cols.flags[i] & LULL_RANGE_START_END ||
			    !lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			*(struct range *)lull_vec_push(ranges) = (struct range){
				.start_ns = cols.start_ns[i],
				.dur_ns = cols.dur_ns[i],
				.lane = cols.lane[i],
				.label = cols.label[i],
				.depth = cols.depth[i],
			};
		}
	}
	lull_cursor_release(&c);
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x->depth - y->depth;
}

/* Whether `inner`, which does not begin before `outer`, lies inside it. */
static bool holds(const struct range *outer, const struct range *inner)
{
	u64 offset_ns = inner->start_ns - outer->start_ns;
	bool is_deeper = inner->depth > outer->depth || inner->depth == DEPTH_DEEPER;

	return is_deeper && offset_ns <= outer->dur_ns &&
	       inner->dur_ns <= outer->dur_ns - offset_ns;
}

static void nest(struct range *ranges, size_t n, const struct lull_label_row *labels)
{
	struct lull_map innermost; /* RangeId by lane and domain */

	lull_map_init(&innermost);
	for (size_t i = 0; i < n; i++) {
		struct range *range = &ranges[i];
		u64 domain = range->label ? labels[range->label - 1].domain : 0;
		u32 *top = lull_map_add(&innermost, domain << 32 | range->lane, NULL);
		u32 parent = *top;

		while (parent && !holds(&ranges[parent - 1], range))
			parent = ranges[parent - 1].parent;
		*top = (u32)i + 1;
		range->parent = parent;
		if (parent) {
			range->level = ranges[parent - 1].level + 1;
			ranges[parent - 1].n_children++;
			ranges[parent - 1].child_ns += range->dur_ns;
		}
	}
	lull_map_release(&innermost);
}

/* ":5:6", outermost first. */
static void put_stack(struct lull_str *to, const struct range *ranges, u32 id)
{
	struct lull_vec ids;

	lull_vec_init(&ids, sizeof(u32));
	for (; id; id = ranges[id - 1].parent)
		*(u32 *)lull_vec_push(&ids) = id;
	for (size_t i = ids.n; i-- > 0;)
		lull_str_addf(to, ":%u", *(u32 *)lull_vec_get(&ids, i));
	lull_vec_release(&ids);
}

static void put_times(struct lull_out *out, const struct range *range)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)range->start_ns);
	lull_out_i64(out, (i64)(range->start_ns + range->dur_ns));
	lull_out_i64(out, (i64)range->dur_ns);
	lull_out_i64(out, (i64)range->child_ns);
	lull_out_i64(out, (i64)(range->dur_ns - range->child_ns));
}

static void put_range(struct lull_out *out, struct lull_reader *r, const struct range *ranges,
		      u32 id)
{
	const struct range *range = &ranges[id - 1];
	struct lull_lane_ids ids = lull_lanes_ids(r, range->lane);
	struct lull_str name = LULL_STR_INIT, text = LULL_STR_INIT;
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	put_times(out, range);
	if (range->label)
		lull_nvtx_name(&name, r, labels[range->label - 1].name,
			       labels[range->label - 1].domain);
	lull_out_text(out, lull_str_text(&name));
	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_i64(out, range->level);
	lull_out_i64(out, range->n_children);
	lull_out_i64(out, id);
	if (range->parent)
		lull_out_i64(out, range->parent);
	else
		lull_out_skip(out);
	put_stack(&text, ranges, id);
	lull_out_text(out, lull_str_text(&text));
	lull_str_clear(&text);
	for (u32 level = 0; level < range->level; level++)
		lull_str_puts(&text, "--");
	lull_str_puts(&text, lull_str_text(&name));
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&name);
	lull_str_release(&text);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_vec ranges;
	size_t n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);

	(void)err;
	lull_vec_init(&ranges, sizeof(struct range));
	collect(&ranges, r, options);
	if (ranges.n)
		qsort(ranges.at, ranges.n, sizeof(struct range), by_start);
	nest(ranges.at, ranges.n, labels);
	for (size_t i = 0; i < ranges.n; i++)
		put_range(out, r, ranges.at, (u32)i + 1);
	lull_vec_release(&ranges);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_pushpop_trace = {
	.name = "nvtx_pushpop_trace",
	.display = "NVTX Push/Pop Range Trace",
	.summary = "each push/pop range with its place in the tree",
	.help = "Every range that a thread pushed and popped, by start, with the ranges around and "
		"inside "
		"it. Ranges nest within a thread and an NVTX domain. With a filter the ranges "
		"around "
		"the filtered time are left out and levels count from there.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(range),
	.empty = "there are ranges, but none that was pushed and popped",
	.run = run,
};
