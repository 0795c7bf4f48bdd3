/*
 * nvtx_pushpop_trace: each push/pop range with its place in the tree of ranges.
 */
#include "model/nest.h"
#include "report/lanes.h"
#include "report/nvtx.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "begin" },
	{ .name = "End", .kind = LULL_OUT_NS, .is_moment = true, .doc = "end", .is_spare = true },
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "end minus start" },
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
	LULL_NVTX_PLACE_COLUMNS,
	{ .name = "NameTree",
	  .kind = LULL_OUT_TEXT,
	  .doc = "the name after \"--\" for each level" },
};

static void put_times(struct lull_out *out, const struct lull_nest_range *range)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)range->start_ns);
	lull_out_i64(out, (i64)(range->start_ns + range->dur_ns));
	lull_out_i64(out, (i64)range->dur_ns);
	lull_out_i64(out, (i64)range->child_ns);
	lull_out_i64(out, (i64)(range->dur_ns - range->child_ns));
}

/* Cells that many rows have in common. */
struct memos {
	struct lull_out_memo name;   /* by label */
	struct lull_out_memo thread; /* by lane */
	struct lull_out_memo tree;   /* by label and level */
};

/* Deeper ones are rare. */
#define TREE_LEVELS 16

static void put_name(struct lull_out *out, struct lull_reader *r, u32 label, struct memos *memos)
{
	if (lull_out_recall(out, &memos->name, label))
		return;
	lull_nvtx_label_name(lull_out_text_begin(out), r, label);
	lull_out_text_end(out);
	lull_out_remember(out, &memos->name, label);
}

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

static void put_tree(struct lull_out *out, struct lull_reader *r,
		     const struct lull_nest_range *range, struct memos *memos)
{
	u64 key = (u64)range->label * TREE_LEVELS + range->level;
	bool is_usual = range->level < TREE_LEVELS;
	struct lull_str *text;

	if (is_usual && lull_out_recall(out, &memos->tree, key))
		return;
	text = lull_out_text_begin(out);
	for (u32 level = 0; level < range->level; level++)
		lull_str_puts(text, "--");
	lull_nvtx_label_name(text, r, range->label);
	lull_out_text_end(out);
	if (is_usual)
		lull_out_remember(out, &memos->tree, key);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_nest_range *range;
	struct lull_nest nest;
	struct memos memos;

	(void)err;
	lull_out_memo_init(&memos.name);
	lull_out_memo_init(&memos.thread);
	lull_out_memo_init(&memos.tree);
	lull_nest_init(&nest, r, lull_report_window(options), LULL_NEST_PUSHPOP);
	range = nest.ranges.at;
	for (size_t i = 0; i < nest.ranges.n; i++, range++) {
		put_times(out, range);
		put_name(out, r, range->label, &memos);
		put_thread(out, r, range->lane, &memos);
		lull_nvtx_put_place(out, &nest, (u32)i + 1);
		put_tree(out, r, range, &memos);
	}
	lull_nest_release(&nest);
	lull_out_memo_release(&memos.name);
	lull_out_memo_release(&memos.thread);
	lull_out_memo_release(&memos.tree);
	return LULL_OK;
}

const struct lull_report lull_report_nvtx_pushpop_trace = {
	.name = "nvtx_pushpop_trace",
	.old_name = "nvtxpptrace",
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
	.is_long = true,
	.run = run,
};
