/*
 * flame: samples of a window of time, put together by call path.
 *
 *	flame?[from=&to= | whole=1][&thread=p1/t1][&kind=python]
 *	{"total", "unit", "from", "to", "is_steady", "threads": [[key, weight], ...],
 *	 "nodes": [[parent, name, weight, kind], ...]}
 *
 * Without a window it is of the steady steps, if the analysis knows them: start-up and imports say
 * nothing about a loop. Frames of the same function below the same caller are one, and so are
 * frames without a name in one file. Addresses in no file are no code, but what a broken stack
 * held, and so are those of the system's kernel that seem to call the program: they are left out.
 * Branches under a thousandth of all are left out, too, and what they weigh is part of their
 * parent.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "page/page_open.h"

#define MIN_SHARE 1000u
#define MAX_DEPTH 500
#define KERNEL	  3u /* frame.kind */

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
	bool *calls_program;   /* by stack */
	u32 *node_of;	       /* by stack, + 1 */
	struct lull_vec nodes; /* struct node; the first is the root */
	u64 total;
	u64 *by_lane; /* weight, by lane */
	size_t n_lanes, n_put;
	u64 lane; /* the only one that counts; 0: all do */
	bool is_python;
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

/* Count a sample, and use it if its thread is wanted. */
static void take(struct flame *f, u32 lane, u32 stack, u64 weight)
{
	if (lane <= f->n_lanes)
		f->by_lane[lane] += weight;
	if (!f->lane || lane == f->lane)
		add(f, stack, weight);
}

static void add_native(struct flame *f, struct lull_span span)
{
	struct lull_cursor c;
	struct lull_sample_cols cols;
	size_t n;

	lull_cursor_init(&c, f->r, LULL_TABLE_sample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.start_ns[i] >= span.from_ns && cols.start_ns[i] < span.to_ns)
				take(f, cols.lane[i], cols.stack[i],
				     cols.weight_ns[i] ? cols.weight_ns[i] : 1);
	lull_cursor_release(&c);
}

static void add_python(struct flame *f, struct lull_span span)
{
	struct lull_cursor c;
	struct lull_pysample_cols cols;
	size_t n;

	lull_cursor_init(&c, f->r, LULL_TABLE_pysample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.start_ns[i] >= span.from_ns && cols.start_ns[i] < span.to_ns)
				take(f, cols.lane[i], cols.stack[i], 1);
	lull_cursor_release(&c);
}

/*
 * The node of a frame below `parent`, made if there is none; `parent` itself if the frame is no
 * code, or like it without a name and in the same file.
 */
static u32 child_of(struct flame *f, u32 parent, u32 frame)
{
	static const struct lull_frame_row none = { 0 };
	const struct lull_frame_row *row =
		frame && frame <= f->n_frames ? &f->frames[frame - 1] : &none;
	u32 function = row->function ? row->function : UINT32_MAX - row->module;
	struct node *nodes = f->nodes.at, *node;
	u32 i;

	if (!row->function && (!row->module || nodes[parent].function == function))
		return parent;

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

static bool is_kernel(const struct flame *f, u32 stack)
{
	u32 frame = f->stacks[stack - 1].frame;

	return frame && frame <= f->n_frames && f->frames[frame - 1].kind == KERNEL;
}

/* Parents have smaller ids, so one pass upwards sums and one downwards builds. */
static void build(struct flame *f)
{
	struct node *root = lull_vec_push(&f->nodes);

	root->weight = f->total;
	for (size_t id = f->n_stacks; id > 0; id--) {
		u32 parent = f->stacks[id - 1].parent;

		if (!parent || parent >= id)
			continue;
		f->weights[parent] += f->weights[id];
		f->calls_program[parent] |= f->weights[id] && !is_kernel(f, (u32)id);
	}
	for (u32 id = 1; id <= f->n_stacks; id++) {
		u32 parent = f->stacks[id - 1].parent, node;

		if (!f->weights[id] || parent >= id || (parent && !f->node_of[parent]))
			continue;
		node = parent ? f->node_of[parent] - 1 : 0;
		if (!is_kernel(f, id) || !f->calls_program[id])
			node = child_of(f, node, f->stacks[id - 1].frame);
		f->node_of[id] = node + 1;
		/* A frame that became its caller is part of what that weighs already. */
		if (!parent || node != f->node_of[parent] - 1)
			((struct node *)f->nodes.at)[node].weight += node ? f->weights[id] : 0;
	}
}

/* "[libcublas.so.12]": code of a file without names. */
static void put_module(struct lull_str *text, struct flame *f, u32 module)
{
	size_t n;
	const struct lull_module_row *modules = lull_reader_dim(f->r, LULL_TABLE_module, &n);
	const char *path =
		module <= n ? lull_reader_string(f->r, modules[module - 1].path, NULL) : "";
	const char *slash = strrchr(path, '/');

	if (*path == '[') /* "[kernel]" is no file */
		lull_str_puts(text, path);
	else
		lull_str_addf(text, "[%s]", slash ? slash + 1 : path);
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
		put_module(&text, f, row->module);
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

/* The threads of the page that were sampled, with their weights. */
static void put_threads(struct lull_json *j, const struct flame *f, const struct lull_timeline *t)
{
	const struct lull_row *rows = t->rows.at;

	lull_json_key(j, "threads");
	lull_json_array(j);
	for (size_t i = 0; i < t->rows.n; i++) {
		if (strcmp(rows[i].kind, LULL_ROW_THREAD) != 0 || rows[i].id > f->n_lanes ||
		    !f->by_lane[rows[i].id])
			continue;
		lull_json_array(j);
		lull_json_text(j, rows[i].key);
		lull_json_u64(j, f->by_lane[rows[i].id]);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* Which samples: the window and the thread. */
static int choose(struct lull_question *q, struct flame *f, struct lull_span *span, bool *is_steady,
		  struct lull_err *err)
{
	const struct lull_timeline *t = q->report->timeline;
	const char *thread = lull_args_get(q->args, "thread");
	u32 row = thread ? lull_timeline_row_by_key(t, thread) : LULL_NO_ROW;

	if (lull_args_span(q->args, t->origin_ns, span, err))
		return err->code;
	if (thread &&
	    (row == LULL_NO_ROW || strcmp(lull_timeline_row(t, row)->kind, LULL_ROW_THREAD) != 0))
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no thread %s", thread);
	if (thread)
		f->lane = lull_timeline_row(t, row)->id;
	*is_steady = !lull_args_get(q->args, "from") && !lull_args_get(q->args, "to") &&
		     !lull_args_get(q->args, "whole") && lull_page_steady(q->report, span);
	return LULL_OK;
}

static void put(struct lull_question *q, struct flame *f, struct lull_span span, bool is_steady)
{
	const struct lull_timeline *t = q->report->timeline;
	struct lull_span shown = lull_span_cut(span, t->span.from_ns, t->span.to_ns);
	struct lull_json j;

	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "total", f->total);
	lull_page_pair_text(&j, "unit", f->is_python ? "samples" : "ns");
	lull_page_pair_u64(&j, "from", shown.from_ns - t->origin_ns);
	lull_page_pair_u64(&j, "to", shown.to_ns - t->origin_ns);
	lull_page_pair_bool(&j, "is_steady", is_steady);
	lull_page_pair_u64(&j, "n_native", lull_reader_stats(f->r, LULL_TABLE_sample).n_rows);
	lull_page_pair_u64(&j, "n_python", lull_reader_stats(f->r, LULL_TABLE_pysample).n_rows);
	put_threads(&j, f, t);
	lull_json_key(&j, "nodes");
	lull_json_array(&j);
	put_node(&j, f, 0, (struct place){ -1, 0 });
	lull_json_end(&j);
	lull_json_end(&j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	const char *kind = lull_args_get(q->args, "kind");
	struct flame f = { .r = q->reader, .is_python = kind && !strcmp(kind, "python") };
	struct lull_span span;
	bool is_steady = false;

	if (choose(q, &f, &span, &is_steady, err))
		return err->code;
	f.stacks = lull_reader_dim(f.r, LULL_TABLE_stack, &f.n_stacks);
	f.frames = lull_reader_dim(f.r, LULL_TABLE_frame, &f.n_frames);
	lull_reader_dim(f.r, LULL_TABLE_lane, &f.n_lanes);
	f.weights = lull_alloc(f.n_stacks + 1, sizeof(*f.weights));
	f.node_of = lull_alloc(f.n_stacks + 1, sizeof(*f.node_of));
	f.calls_program = lull_alloc(f.n_stacks + 1, sizeof(*f.calls_program));
	f.by_lane = lull_alloc(f.n_lanes + 1, sizeof(*f.by_lane));
	lull_vec_init(&f.nodes, sizeof(struct node));
	if (f.is_python)
		add_python(&f, span);
	else
		add_native(&f, span);
	build(&f);
	put(q, &f, span, is_steady);
	free(f.weights);
	free(f.node_of);
	free(f.by_lane);
	free(f.calls_program);
	lull_vec_release(&f.nodes);
	return LULL_OK;
}

const struct lull_answer lull_answer_flame = {
	.name = "flame",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
