/*
 * flame: samples of a window of time, put together by call path.
 *
 *	flame?from=&to=[&process=1][&kind=python]
 *	{"total", "unit", "nodes": [[parent, name, weight, kind], ...]}
 *
 * Frames of the same function below the same caller are one. Branches under a thousandth of all are
 * left out, and what they weigh is part of their parent.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define MIN_SHARE 1000u
#define MAX_DEPTH 500

/* A function below a caller: the tree is kept as first child and next sibling. */
struct node {
	u32 frame; /* one that stands for it */
	u32 function, file;
	u64 weight;
	u32 child, sibling; /* + 1 */
};

struct flame {
	struct lull_reader *r;
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	size_t n_stacks, n_frames;
	u64 *weights;	       /* by stack */
	u32 *node_of;	       /* by stack, + 1 */
	struct lull_vec nodes; /* struct node; the first is the root */
	u64 total;
	size_t n_put;
};

/* Where a node stands in what was written. */
struct place {
	i64 parent;
	int depth;
};

static void add(struct flame *f, u32 stack, u64 weight)
{
	if (stack <= f->n_stacks)
		f->weights[stack] += weight;
	f->total += weight;
}

static bool is_wanted(struct flame *f, u32 lane, u64 process)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(f->r, LULL_TABLE_lane, &n);

	return process == UINT64_MAX || (lane && lane <= n && lanes[lane - 1].process == process);
}

static void add_native(struct flame *f, struct lull_span span, u64 process)
{
	struct lull_cursor c;
	struct lull_sample_cols cols;
	size_t n;

	lull_cursor_init(&c, f->r, LULL_TABLE_sample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.start_ns[i] >= span.from_ns && cols.start_ns[i] < span.to_ns &&
			    is_wanted(f, cols.lane[i], process))
				add(f, cols.stack[i], cols.weight_ns[i] ? cols.weight_ns[i] : 1);
	lull_cursor_release(&c);
}

static void add_python(struct flame *f, struct lull_span span, u64 process)
{
	struct lull_cursor c;
	struct lull_pysample_cols cols;
	size_t n;

	lull_cursor_init(&c, f->r, LULL_TABLE_pysample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.start_ns[i] >= span.from_ns && cols.start_ns[i] < span.to_ns &&
			    is_wanted(f, cols.lane[i], process))
				add(f, cols.stack[i], 1);
	lull_cursor_release(&c);
}

/* The node of a frame below `parent`, made if there is none. */
static u32 child_of(struct flame *f, u32 parent, u32 frame)
{
	static const struct lull_frame_row none = { 0 };
	const struct lull_frame_row *row =
		frame && frame <= f->n_frames ? &f->frames[frame - 1] : &none;
	u32 function = row->function ? row->function : UINT32_MAX - frame;
	struct node *nodes = f->nodes.at, *node;
	u32 i;

	for (i = nodes[parent].child; i; i = nodes[i - 1].sibling)
		if (nodes[i - 1].function == function && nodes[i - 1].file == row->file)
			return i - 1;
	node = lull_vec_push(&f->nodes);
	nodes = f->nodes.at;
	*node = (struct node){ .frame = frame,
			       .function = function,
			       .file = row->file,
			       .sibling = nodes[parent].child };
	nodes[parent].child = (u32)f->nodes.n;
	return (u32)f->nodes.n - 1;
}

/* Parents have smaller ids, so one pass upwards sums and one downwards builds. */
static void build(struct flame *f)
{
	struct node *root = lull_vec_push(&f->nodes);

	root->weight = f->total;
	for (size_t id = f->n_stacks; id > 0; id--) {
		u32 parent = f->stacks[id - 1].parent;

		if (parent < id)
			f->weights[parent] += parent ? f->weights[id] : 0;
	}
	for (u32 id = 1; id <= f->n_stacks; id++) {
		u32 parent = f->stacks[id - 1].parent, node;

		if (!f->weights[id] || parent >= id || (parent && !f->node_of[parent]))
			continue;
		node = child_of(f, parent ? f->node_of[parent] - 1 : 0, f->stacks[id - 1].frame);
		f->node_of[id] = node + 1;
		((struct node *)f->nodes.at)[node].weight += f->weights[id];
	}
}

static void put_label(struct lull_json *j, struct flame *f, u32 frame)
{
	const struct lull_frame_row *row =
		frame && frame <= f->n_frames ? &f->frames[frame - 1] : NULL;
	struct lull_str text = LULL_STR_INIT;

	if (!row)
		lull_str_puts(&text, "all");
	else if (row->function)
		lull_str_puts(&text, lull_reader_string(f->r, row->function, NULL));
	else
		lull_str_addf(&text, "%#llx", (unsigned long long)row->addr);
	if (row && row->file)
		lull_str_addf(&text, "  %s:%u", lull_reader_string(f->r, row->file, NULL),
			      row->line);
	lull_json_text(j, lull_str_text(&text));
	lull_str_release(&text);
}

/* Write a node and those below it, each with the place of its parent in the list. */
static void put_node(struct lull_json *j, struct flame *f, u32 ix, struct place at)
{
	const struct node *node = lull_vec_get(&f->nodes, ix);
	const struct lull_frame_row *row =
		node->frame && node->frame <= f->n_frames ? &f->frames[node->frame - 1] : NULL;
	struct place below = { (i64)f->n_put++, at.depth + 1 };

	lull_json_array(j);
	lull_json_i64(j, at.parent);
	put_label(j, f, node->frame);
	lull_json_u64(j, node->weight);
	lull_json_u64(j, row ? row->kind : 0);
	lull_json_end(j);
	for (u32 i = node->child; i && at.depth < MAX_DEPTH;) {
		const struct node *child = lull_vec_get(&f->nodes, i - 1);

		if (child->weight * MIN_SHARE >= f->total)
			put_node(j, f, i - 1, below);
		i = child->sibling;
	}
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct flame f = { .r = q->reader };
	const char *kind = lull_args_get(q->args, "kind");
	bool is_python = kind && !strcmp(kind, "python");
	struct lull_span span;
	struct lull_json j;
	u64 process;

	if (lull_args_span(q->args, q->report->timeline->origin_ns, &span, err) ||
	    lull_args_u64(q->args, "process", UINT32_MAX, UINT64_MAX, &process, err))
		return err->code;
	f.stacks = lull_reader_dim(f.r, LULL_TABLE_stack, &f.n_stacks);
	f.frames = lull_reader_dim(f.r, LULL_TABLE_frame, &f.n_frames);
	f.weights = lull_alloc(f.n_stacks + 1, sizeof(*f.weights));
	f.node_of = lull_alloc(f.n_stacks + 1, sizeof(*f.node_of));
	lull_vec_init(&f.nodes, sizeof(struct node));
	if (is_python)
		add_python(&f, span, process);
	else
		add_native(&f, span, process);
	build(&f);
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "total", f.total);
	lull_page_pair_text(&j, "unit", is_python ? "samples" : "ns");
	lull_page_pair_u64(&j, "n_native", lull_reader_stats(f.r, LULL_TABLE_sample).n_rows);
	lull_page_pair_u64(&j, "n_python", lull_reader_stats(f.r, LULL_TABLE_pysample).n_rows);
	lull_json_key(&j, "nodes");
	lull_json_array(&j);
	put_node(&j, &f, 0, (struct place){ -1, 0 });
	lull_json_end(&j);
	lull_json_end(&j);
	free(f.weights);
	free(f.node_of);
	lull_vec_release(&f.nodes);
	return LULL_OK;
}

const struct lull_answer lull_answer_flame = {
	.name = "flame",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
