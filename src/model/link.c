#include "model/link.h"

#include <stdlib.h>

#include "base/mem.h"

/* More than this many places an id are a waste. */
#define MAX_HOLES 8

/* ---- keys of rows ---- */

bool lull_link_columns_init(struct lull_link_columns *k, struct lull_cursor *c)
{
	size_t n;

	k->lanes = lull_reader_dim(c->reader, LULL_TABLE_lane, &n);
	k->correlation = lull_table_column(c->table, "correlation");
	k->process = lull_table_column(c->table, "process");
	k->lane = lull_table_column(c->table, "lane");
	if (k->correlation < 0)
		return false;
	lull_cursor_want(c, "correlation");
	if (k->process >= 0)
		lull_cursor_want(c, "process");
	if (k->lane >= 0)
		lull_cursor_want(c, "lane");
	return true;
}

/* ---- a place for each key ---- */

void lull_link_index_init(struct lull_link_index *x, struct lull_reader *r)
{
	*x = (struct lull_link_index){ .n_processes = lull_reader_n_dim(r, LULL_TABLE_process) };
	lull_map_init(&x->by_key);
	x->processes = lull_alloc(x->n_processes + 1, sizeof(*x->processes));
}

void lull_link_index_release(struct lull_link_index *x)
{
	for (size_t i = 0; x->processes && i <= x->n_processes; i++)
		free(x->processes[i].places);
	free(x->processes);
	x->processes = NULL;
	lull_map_release(&x->by_key);
}

void lull_link_index_settle(struct lull_link_index *x)
{
	for (size_t i = 0; i <= x->n_processes; i++) {
		struct lull_link_process *p = &x->processes[i];
		u64 n_places = (u64)p->last - p->first + 1;

		if (p->n && n_places / MAX_HOLES <= p->n)
			p->places = lull_alloc(n_places, sizeof(*p->places));
	}
}

/* ---- the calls ---- */

typedef void visit_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n);

/* start_ns in a place that waits for its call: no call comes after it. */
#define NO_CALL UINT64_MAX

static void each_block(struct lull_link *l, struct lull_reader *r, const char *const *columns,
		       visit_calls *visit)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	for (; *columns; columns++)
		lull_cursor_want(&c, *columns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		visit(l, &cols, n);
	lull_cursor_release(&c);
}

static u64 key_of(const struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t i)
{
	return lull_link_key(lull_work_process(l->lanes, 0, cols->lane[i]), cols->correlation[i]);
}

static void measure(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	for (size_t i = 0; i < n; i++)
		lull_link_index_measure(&l->index, key_of(l, cols, i));
}

static struct lull_call call_of(const struct lull_cuda_call_cols *cols, size_t i)
{
	return (struct lull_call){
		.start_ns = cols->start_ns[i],
		.dur_ns = cols->dur_ns[i],
		.lane = cols->lane[i],
		.name = cols->name[i],
	};
}

/* Put the call of a row into a place that has one, if it comes before that. */
static void replace(struct lull_call *to, const struct lull_cuda_call_cols *cols, size_t i)
{
	struct lull_call call = call_of(cols, i);

	if (lull_link_is_first(lull_call_span(&call), lull_call_span(to)))
		*to = call;
}

static void add_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	struct lull_call *calls = lull_vec_extend(&l->calls, n);
	u32 number = (u32)(l->calls.n - n);

	for (size_t i = 0; i < n; i++) {
		u32 *place = lull_link_index_add(&l->index, key_of(l, cols, i));

		if (!place)
			continue;
		if (*place) {
			replace((struct lull_call *)l->calls.at + *place - 1, cols, i);
		} else {
			*calls++ = call_of(cols, i);
			*place = ++number;
		}
	}
	l->calls.n = number;
}

/* The calls whose keys have places already. */
static void fill_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const u32 *place = lull_link_index_find(&l->index, key_of(l, cols, i));

		if (place && *place)
			replace((struct lull_call *)l->calls.at + *place - 1, cols, i);
	}
}

static const char *const all_columns[] = {
	"start_ns", "dur_ns", "lane", "name", "correlation", NULL
};

static void link_init(struct lull_link *l, struct lull_reader *r)
{
	size_t n_lanes;

	*l = (struct lull_link){ .lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes) };
	lull_vec_init(&l->calls, sizeof(struct lull_call));
	lull_link_index_init(&l->index, r);
}

void lull_link_init(struct lull_link *l, struct lull_reader *r)
{
	static const char *const numbers[] = { "lane", "correlation", NULL };

	link_init(l, r);
	each_block(l, r, numbers, measure);
	lull_link_index_settle(&l->index);
	each_block(l, r, all_columns, add_calls);
}

void lull_link_init_keys(struct lull_link *l, struct lull_reader *r, const struct lull_vec *keys)
{
	const u64 *at = keys->at;

	link_init(l, r);
	for (size_t i = 0; i < keys->n; i++)
		lull_link_index_measure(&l->index, at[i]);
	lull_link_index_settle(&l->index);
	for (size_t i = 0; i < keys->n; i++) {
		u32 *place = lull_link_index_add(&l->index, at[i]);

		if (!place || *place)
			continue;
		*(struct lull_call *)lull_vec_push(&l->calls) =
			(struct lull_call){ .start_ns = NO_CALL };
		*place = (u32)l->calls.n;
	}
	each_block(l, r, all_columns, fill_calls);
}

void lull_link_release(struct lull_link *l)
{
	lull_link_index_release(&l->index);
	lull_vec_release(&l->calls);
}

const struct lull_call *lull_link_find_key(const struct lull_link *l, u64 key)
{
	const u32 *place = lull_link_index_find(&l->index, key);
	const struct lull_call *call;

	if (!place || !*place)
		return NULL;
	call = (const struct lull_call *)l->calls.at + *place - 1;
	return call->start_ns == NO_CALL ? NULL : call;
}

u64 lull_link_queue_ns(const struct lull_call *call, const struct lull_work *work)
{
	u64 end_ns = lull_call_span(call).to_ns;

	return work->start_ns > end_ns ? work->start_ns - end_ns : 0;
}

u64 lull_link_total_ns(const struct lull_call *call, const struct lull_work *work)
{
	u64 end_ns = lull_work_end_ns(work), call_end_ns = lull_call_span(call).to_ns;

	return (end_ns > call_end_ns ? end_ns : call_end_ns) - call->start_ns;
}
