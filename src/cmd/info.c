/* What both forms of `lull info` read from a report. */
#include "cmd/info.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/work.h"

/* A deeper tree is cut off there: a file can claim that processes are each other's parents. */
#define MAX_DEPTH 64u

/* The processes of a report while they are put in order. */
struct tree {
	const struct lull_process_row *rows;
	size_t n;
	struct lull_map by_pid;	     /* pid to row index + 1 of its first image */
	struct lull_map first_child; /* pid to row index + 1 */
	u32 *next_child;	     /* row index + 1 of the next row with the same parent */
	bool *is_done;
	struct lull_info_process *out;
	size_t n_out;
};

/* A row and, after it, what descends from it. */
static void visit(struct tree *t, u32 ix, u32 depth)
{
	const struct lull_process_row *row = &t->rows[ix];
	u32 *child;

	if (t->is_done[ix])
		return;
	t->is_done[ix] = true;
	t->out[t->n_out++] = (struct lull_info_process){ .row = row, .id = ix + 1, .depth = depth };
	child = depth < MAX_DEPTH ? lull_map_find(&t->first_child, row->pid) : NULL;
	for (u32 c = child ? *child : 0; c; c = t->next_child[c - 1])
		visit(t, c - 1, depth + 1);
}

/* A row and when it began, to sort by. */
struct birth {
	u64 start_ns;
	u32 ix;
};

static int compare_births(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->ix > y->ix) - (x->ix < y->ix);
}

static void link_children(struct tree *t)
{
	struct birth *births = lull_alloc(t->n + 1, sizeof(*births));

	for (size_t i = 0; i < t->n; i++)
		births[i] = (struct birth){ t->rows[i].start_ns, (u32)i };
	lull_sort(births, t->n, sizeof(*births), compare_births);
	/* From the last to the first, so that the first is at the head of its list. */
	for (size_t i = t->n; i-- > 0;) {
		u32 ix = births[i].ix;
		u32 *head = lull_map_add(&t->first_child, t->rows[ix].parent_pid, NULL);

		t->next_child[ix] = *head;
		*head = ix + 1;
		*lull_map_add(&t->by_pid, t->rows[ix].pid, NULL) = ix + 1;
	}
	free(births);
}

static void count_threads(struct lull_reader *r, struct lull_info_process *out, size_t n_out)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u32 *counts = lull_alloc(n_out + 1, sizeof(*counts));

	for (size_t i = 0; i < n; i++)
		if (lanes[i].kind != LULL_LANE_STREAM && lanes[i].process <= n_out)
			counts[lanes[i].process]++;
	for (size_t i = 0; i < n_out; i++)
		out[i].n_threads = counts[out[i].id];
	free(counts);
}

struct lull_info_process *lull_info_processes(struct lull_reader *r, size_t *n)
{
	struct tree t = { 0 };

	t.rows = lull_reader_dim(r, LULL_TABLE_process, &t.n);
	lull_map_init(&t.by_pid);
	lull_map_init(&t.first_child);
	t.next_child = lull_alloc(t.n + 1, sizeof(*t.next_child));
	t.is_done = lull_alloc(t.n + 1, sizeof(*t.is_done));
	t.out = lull_alloc(t.n + 1, sizeof(*t.out));
	link_children(&t);
	for (size_t i = 0; i < t.n; i++)
		if (!lull_map_find(&t.by_pid, t.rows[i].parent_pid))
			visit(&t, (u32)i, 0);
	for (size_t i = 0; i < t.n; i++)
		visit(&t, (u32)i, 0); /* those in a circle, which no root leads to */
	count_threads(r, t.out, t.n_out);
	lull_map_release(&t.by_pid);
	lull_map_release(&t.first_child);
	free(t.next_child);
	free(t.is_done);
	*n = t.n_out;
	return t.out;
}

u64 lull_info_span_ns(struct lull_reader *r)
{
	struct lull_span span = lull_span_recording(r);

	return span.to_ns - span.from_ns;
}

bool lull_info_is_simulated(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	bool is_simulated = lull_reader_info(r)->flags & LULL_FILE_SIMULATED;

	for (size_t i = 0; i < n; i++)
		is_simulated = is_simulated || devices[i].is_simulated;
	return is_simulated;
}

void lull_info_ending(const struct lull_process_row *p, char *text, size_t cap_bytes)
{
	static const char *const kinds[] = { "unknown", "exit", "signal", "exec", "running" };
	const char *kind = kinds[p->exit_kind < LULL_COUNT_OF(kinds) ? p->exit_kind : 0];

	if (p->exit_kind == 1 || p->exit_kind == 2)
		snprintf(text, cap_bytes, "%s %u", kind, p->exit_code);
	else
		snprintf(text, cap_bytes, "%s", kind);
}
