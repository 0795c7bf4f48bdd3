#include "model/link.h"

#include <stdlib.h>

#include "base/mem.h"

/*
 * Numbers grow with time and leave few holes, so a process has an array of the calls by number,
 * from its smallest one on. Where that would be mostly holes, the calls are found by hash.
 */
struct lull_link_process {
	u64 n_calls;
	u32 first, last; /* numbers */
	u32 *calls;	 /* by number - first: index in calls + 1; NULL: by hash */
};

/* More than this many places a call are a waste. */
#define MAX_HOLES 8

static u64 number_of(u32 process, u32 correlation)
{
	return (u64)process << 32 | correlation;
}

typedef void visit_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n);

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

static u32 process_of(const struct lull_link *l, u32 lane)
{
	return lane ? l->lanes[lane - 1].process : 0;
}

static void measure(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lull_link_process *p = &l->processes[process_of(l, cols->lane[i])];
		u32 number = cols->correlation[i];

		if (!p->n_calls || number < p->first)
			p->first = number;
		if (!p->n_calls || number > p->last)
			p->last = number;
		p->n_calls++;
	}
}

/* The place of a number that is new, or NULL if it has a call already. */
static u32 *new_place(struct lull_link *l, u32 process, u32 correlation)
{
	struct lull_link_process *p = &l->processes[process];
	bool is_new;
	u32 *place;

	if (p->calls) {
		place = &p->calls[correlation - p->first];
		return *place ? NULL : place;
	}
	place = lull_map_add(&l->by_number, number_of(process, correlation), &is_new);
	return is_new ? place : NULL;
}

static void add_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		u32 lane = cols->lane[i];
		u32 *place = new_place(l, process_of(l, lane), cols->correlation[i]);

		if (!place)
			continue;
		*(struct lull_call *)lull_vec_push(&l->calls) = (struct lull_call){
			.start_ns = cols->start_ns[i],
			.dur_ns = cols->dur_ns[i],
			.lane = lane,
			.name = cols->name[i],
		};
		*place = (u32)l->calls.n;
	}
}

static void make_arrays(struct lull_link *l)
{
	for (size_t i = 0; i <= l->n_processes; i++) {
		struct lull_link_process *p = &l->processes[i];
		u64 n_places = (u64)p->last - p->first + 1;

		if (p->n_calls && n_places / MAX_HOLES <= p->n_calls)
			p->calls = lull_alloc(n_places, sizeof(*p->calls));
	}
}

void lull_link_init(struct lull_link *l, struct lull_reader *r)
{
	static const char *const numbers[] = { "lane", "correlation", NULL };
	static const char *const all[] = {
		"start_ns", "dur_ns", "lane", "name", "correlation", NULL
	};
	size_t n_lanes;

	*l = (struct lull_link){ 0 };
	lull_map_init(&l->by_number);
	lull_vec_init(&l->calls, sizeof(struct lull_call));
	l->lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	lull_reader_dim(r, LULL_TABLE_process, &l->n_processes);
	l->processes = lull_alloc(l->n_processes + 1, sizeof(*l->processes));
	each_block(l, r, numbers, measure);
	make_arrays(l);
	each_block(l, r, all, add_calls);
}

void lull_link_release(struct lull_link *l)
{
	for (size_t i = 0; l->processes && i <= l->n_processes; i++)
		free(l->processes[i].calls);
	free(l->processes);
	lull_map_release(&l->by_number);
	lull_vec_release(&l->calls);
}

const struct lull_call *lull_link_find(const struct lull_link *l, const struct lull_work *work)
{
	const struct lull_link_process *p = &l->processes[work->process];
	const u32 *place = NULL;

	if (!p->calls)
		place = lull_map_find(&l->by_number, number_of(work->process, work->correlation));
	else if (work->correlation >= p->first && work->correlation <= p->last)
		place = &p->calls[work->correlation - p->first];
	return place && *place ? lull_vec_get(&l->calls, *place - 1) : NULL;
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
