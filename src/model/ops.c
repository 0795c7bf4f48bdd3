#include "model/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/link.h"
#include "model/nest.h"
#include "model/order.h"
#include "model/runsort.h"

/* ---- collecting ---- */

#define BACKWARD 2 /* op_label.kind */

/* Operators that the profiler causes, by the names it has for them. */
static bool is_of_profiler(const char *name)
{
	static const char *const names[] = { "profiler::_record_function_enter",
					     "profiler::_record_function_enter_new",
					     "profiler::_record_function_exit",
					     "aten::is_leaf",
					     "aten::output_nr",
					     "aten::_version" };

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Walk over a table in which everything has a thread and a duration. */
static void open_cursor(struct lull_cursor *c, struct lull_reader *r, enum lull_table table,
			struct lull_span window)
{
	lull_cursor_init(c, r, table, window.from_ns, window.to_ns);
	lull_cursor_want(c, "start_ns");
	lull_cursor_want(c, "dur_ns");
	lull_cursor_want(c, "lane");
}

static void push(struct lull_ops *ops, struct lull_span window, const struct lull_op_node *node)
{
	if (lull_span_holds(window, node->start_ns, node->end_ns - node->start_ns))
		lull_vec_add(&ops->nodes, node, 1);
}

static void collect_ops(struct lull_ops *ops, struct lull_reader *r, struct lull_span window)
{
	size_t n, n_labels;
	const struct lull_op_label_row *labels = lull_reader_dim(r, LULL_TABLE_op_label, &n_labels);
	bool *is_hidden = lull_alloc(n_labels + 1, sizeof(*is_hidden));
	struct lull_op_cols cols;
	struct lull_cursor c;

	for (size_t i = 0; i < n_labels; i++)
		is_hidden[i + 1] = is_of_profiler(lull_reader_string(r, labels[i].name, NULL));
	open_cursor(&c, r, LULL_TABLE_op, window);
	lull_cursor_want(&c, "label");
	lull_cursor_want(&c, "sequence");
	lull_cursor_want(&c, "forward_tid");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 label = cols.label[i];
			struct lull_op_node node = {
				.start_ns = cols.start_ns[i],
				.end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				.lane = cols.lane[i],
				.label = label,
				.name = label ? labels[label - 1].name : 0,
				.sequence = cols.sequence[i],
				.forward_tid = cols.forward_tid[i],
				.kind = LULL_OP_OPERATOR,
				.is_backward = label && labels[label - 1].kind == BACKWARD,
			};

			if (!is_hidden[label])
				push(ops, window, &node);
		}
	}
	lull_cursor_release(&c);
	free(is_hidden);
}

static void collect_annotations(struct lull_ops *ops, struct lull_reader *r,
				struct lull_span window)
{
	size_t n, n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);
	struct lull_range_cols cols;
	struct lull_cursor c;

	open_cursor(&c, r, LULL_TABLE_range, window);
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 label = cols.label[i];
			struct lull_op_node node = {
				.start_ns = cols.start_ns[i],
				.end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				.lane = cols.lane[i],
				.name = label ? labels[label - 1].name : 0,
				.sequence = -1,
				.kind = LULL_OP_ANNOTATION,
			};

			if (label && labels[label - 1].api == LULL_LABEL_API_ANNOTATION)
				push(ops, window, &node);
		}
	}
	lull_cursor_release(&c);
}

static void collect_calls(struct lull_ops *ops, struct lull_reader *r, struct lull_span window)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	open_cursor(&c, r, LULL_TABLE_cuda_call, window);
	lull_cursor_want(&c, "name");
	lull_cursor_want(&c, "correlation");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct lull_op_node node = {
				.start_ns = cols.start_ns[i],
				.end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				.lane = cols.lane[i],
				.name = cols.name[i],
				.sequence = -1,
				/* Of use until the work is linked; a call has no label. */
				.label = cols.correlation[i],
				.kind = LULL_OP_CALL,
			};

			push(ops, window, &node);
		}
	}
	lull_cursor_release(&c);
}

/* ---- the tree ---- */

/* By thread and begin; where two begin together, the longer is outside. */
static int by_lane(const void *a, const void *b)
{
	const struct lull_op_node *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->kind - y->kind;
}

static void find_parents(struct lull_ops *ops)
{
	struct lull_op_node *nodes = ops->nodes.at;
	u32 top = 0;

	for (size_t i = 0; i < ops->nodes.n; i++) {
		struct lull_op_node *node = &nodes[i];

		if (top && nodes[top - 1].lane != node->lane)
			top = 0;
		while (top && (node->start_ns >= nodes[top - 1].end_ns ||
			       node->end_ns > nodes[top - 1].end_ns))
			top = nodes[top - 1].parent;
		node->parent = top;
		if (top)
			nodes[top - 1].n_children++;
		top = (u32)i + 1;
	}
}

/* ---- work of devices ---- */

/* The key of a call, 0 for all else. */
static u64 key_of(const struct lull_op_node *node, const struct lull_lane_row *lanes)
{
	if (node->kind != LULL_OP_CALL)
		return 0;
	return lull_link_key(lull_work_process(lanes, 0, node->lane), node->label);
}

static struct lull_span span_of(const struct lull_op_node *node)
{
	return (struct lull_span){ node->start_ns, node->end_ns };
}

/* Which call has which key. */
static void index_calls(const struct lull_ops *ops, struct lull_reader *r,
			struct lull_link_index *calls)
{
	const struct lull_op_node *nodes = ops->nodes.at;
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	for (size_t i = 0; i < ops->nodes.n; i++)
		lull_link_index_measure(calls, key_of(&nodes[i], lanes));
	lull_link_index_settle(calls);
	for (size_t i = 0; i < ops->nodes.n; i++) {
		u32 *ix = lull_link_index_add(calls, key_of(&nodes[i], lanes));

		if (ix &&
		    (!*ix || lull_link_is_first(span_of(&nodes[i]), span_of(&nodes[*ix - 1]))))
			*ix = (u32)i + 1;
	}
}

static void link_work(struct lull_ops *ops, struct lull_reader *r, struct lull_span window)
{
	struct lull_op_node *nodes = ops->nodes.at;
	struct lull_work_cursor c;
	struct lull_work work;
	struct lull_link_index calls;

	lull_link_index_init(&calls, r);
	index_calls(ops, r, &calls);
	lull_work_begin(&c, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL, window);
	while (lull_work_next(&c, &work)) {
		const u32 *found = lull_link_index_find(&calls, lull_link_work_key(&work));
		u32 ix = found ? *found : 0;

		while (ix && nodes[ix - 1].kind == LULL_OP_CALL)
			ix = nodes[ix - 1].parent;
		if (ix) {
			nodes[ix - 1].device_ns += work.dur_ns;
		} else if (lull_span_holds(window, work.start_ns, work.dur_ns)) {
			ops->n_unlinked++;
			ops->unlinked_ns += work.dur_ns;
		}
	}
	lull_work_end(&c);
	lull_link_index_release(&calls);
	for (size_t i = 0; i < ops->nodes.n; i++)
		if (nodes[i].kind == LULL_OP_CALL)
			nodes[i].label = 0;
}

/* ---- memory ---- */

struct alloc {
	u64 at_ns;
	i64 bytes[LULL_N_OP_MEMORY]; /* of it and all before it, once sorted */
};

static void collect_allocs(struct lull_vec *allocs, struct lull_reader *r, struct lull_span window)
{
	struct lull_alloc_cols cols;
	struct alloc *all;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_alloc, window.from_ns, window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			int where = cols.device_kind[i] ? LULL_OP_DEVICE : LULL_OP_HOST;
			struct alloc alloc = { .at_ns = cols.start_ns[i] };

			if (!lull_span_holds(window, alloc.at_ns, 0))
				continue;
			alloc.bytes[where] = cols.size_bytes[i];
			lull_vec_add(allocs, &alloc, 1);
		}
	}
	lull_cursor_release(&c);
	lull_runsort(allocs->at, allocs->n, sizeof(struct alloc));
	all = allocs->at;
	for (size_t i = 1; i < allocs->n; i++)
		for (int k = 0; k < LULL_N_OP_MEMORY; k++)
			all[i].bytes[k] += all[i - 1].bytes[k];
}

/*
 * How many of them are at or before at_ns. Operators are asked for by thread and time, so the
 * answer is near the one before: *near, from which the search widens.
 */
static size_t count_to(const struct lull_vec *allocs, u64 at_ns, size_t *near)
{
	const struct alloc *at = allocs->at;
	size_t low = *near, high, step = 1;

	if (low && at[low - 1].at_ns > at_ns)
		low = 0; /* another thread begins */
	for (high = low; high < allocs->n && at[high].at_ns <= at_ns; step *= 2) {
		low = high + 1;
		high = low + step < allocs->n ? low + step : allocs->n;
	}
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (at[mid].at_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	*near = low;
	return low;
}

/* Bytes of the first `n`. */
static i64 sum_to(const struct lull_vec *allocs, size_t n, int where)
{
	return n ? ((const struct alloc *)allocs->at)[n - 1].bytes[where] : 0;
}

static void add_memory(struct lull_ops *ops, const struct lull_vec *allocs, u8 *is_inside)
{
	struct lull_op_node *nodes = ops->nodes.at;
	size_t near = 0;

	for (size_t i = 0; i < ops->nodes.n; i++) {
		struct lull_op_node *node = &nodes[i];
		size_t from = node->start_ns ? count_to(allocs, node->start_ns - 1, &near) : 0;
		size_t near_end = from, to = count_to(allocs, node->end_ns, &near_end);

		for (int k = 0; k < LULL_N_OP_MEMORY; k++)
			node->bytes[k] = sum_to(allocs, to, k) - sum_to(allocs, from, k);
		/* What is inside a child is inside its parent. */
		if (!node->parent && from < to)
			memset(is_inside + from, 1, to - from);
	}
}

static void take_memory(struct lull_ops *ops, struct lull_reader *r, struct lull_span window)
{
	struct lull_vec allocs;
	u8 *is_inside;

	lull_vec_init(&allocs, sizeof(struct alloc));
	collect_allocs(&allocs, r, window);
	is_inside = lull_alloc(allocs.n + 1, 1);
	if (allocs.n)
		add_memory(ops, &allocs, is_inside);
	for (size_t i = 0; i < allocs.n; i++) {
		if (is_inside[i])
			continue;
		ops->n_loose++;
		for (int k = 0; k < LULL_N_OP_MEMORY; k++)
			ops->loose_bytes[k] += sum_to(&allocs, i + 1, k) - sum_to(&allocs, i, k);
	}
	free(is_inside);
	lull_vec_release(&allocs);
}

/* ---- sums ---- */

/*
 * An operator that calls itself, as dispatching does, is one. Its children then are those of the
 * inner one, and so is what the inner one started; from the innermost outwards, so that chains
 * collapse into their first.
 */
static void merge_same(struct lull_ops *ops)
{
	struct lull_op_node *nodes = ops->nodes.at;

	for (size_t i = ops->nodes.n; i-- > 0;) {
		struct lull_op_node *node = &nodes[i], *parent;

		if (!node->parent)
			continue;
		parent = &nodes[node->parent - 1];
		if (parent->name != node->name || parent->n_children != 1)
			continue;
		parent->n_children = node->n_children;
		parent->device_ns += node->device_ns;
		node->is_gone = true;
	}
	for (size_t i = 0; i < ops->nodes.n; i++)
		while (nodes[i].parent && nodes[nodes[i].parent - 1].is_gone)
			nodes[i].parent = nodes[nodes[i].parent - 1].parent;
}

/* Children are after their parents. */
static void sum_children(struct lull_ops *ops)
{
	struct lull_op_node *nodes = ops->nodes.at;

	for (size_t i = ops->nodes.n; i-- > 0;) {
		struct lull_op_node *node = &nodes[i], *parent;

		if (node->is_gone)
			continue;
		node->device_all_ns += node->device_ns;
		if (!node->parent)
			continue;
		parent = &nodes[node->parent - 1];
		parent->child_ns += node->end_ns - node->start_ns;
		parent->device_all_ns += node->device_all_ns;
		for (int k = 0; k < LULL_N_OP_MEMORY; k++)
			parent->child_bytes[k] += node->bytes[k];
	}
}

void lull_ops_init(struct lull_ops *ops, struct lull_reader *r, struct lull_span window,
		   enum lull_ops_depth depth)
{
	struct lull_vec spare;

	*ops = (struct lull_ops){ 0 };
	lull_vec_init(&ops->nodes, sizeof(struct lull_op_node));
	collect_ops(ops, r, window);
	collect_annotations(ops, r, window);
	if (depth == LULL_OPS_WITH_COSTS)
		collect_calls(ops, r, window);
	lull_vec_init(&spare, sizeof(struct lull_op_node));
	lull_order_sort(&ops->nodes, &spare, by_lane);
	lull_vec_release(&spare);
	find_parents(ops);
	if (depth == LULL_OPS_WITH_COSTS) {
		link_work(ops, r, window);
		take_memory(ops, r, window);
	}
	merge_same(ops);
	sum_children(ops);
}

u32 lull_ops_at(const struct lull_ops *ops, u32 lane, u64 at_ns)
{
	const struct lull_op_node *nodes = ops->nodes.at;
	size_t low = 0, high = ops->nodes.n;
	u32 ix;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (nodes[mid].lane < lane ||
		    (nodes[mid].lane == lane && nodes[mid].start_ns <= at_ns))
			low = mid + 1;
		else
			high = mid;
	}
	ix = (u32)low;
	if (ix && nodes[ix - 1].lane != lane)
		return 0;
	while (ix && (nodes[ix - 1].end_ns < at_ns || nodes[ix - 1].kind == LULL_OP_CALL ||
		      nodes[ix - 1].is_gone))
		ix = nodes[ix - 1].parent;
	return ix;
}

void lull_ops_release(struct lull_ops *ops)
{
	lull_vec_release(&ops->nodes);
}
