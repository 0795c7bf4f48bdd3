#include "model/link.h"

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
	return lull_work_process(l->lanes, 0, lane);
}

static void measure(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	for (size_t i = 0; i < n; i++)
		lull_numbers_measure(&l->numbers, process_of(l, cols->lane[i]),
				     cols->correlation[i]);
}

/* The first call of a number counts. */
static void add_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n)
{
	struct lull_call *calls = lull_vec_extend(&l->calls, n);
	u32 number = (u32)(l->calls.n - n);

	for (size_t i = 0; i < n; i++) {
		u32 lane = cols->lane[i];
		u32 *place =
			lull_numbers_add(&l->numbers, process_of(l, lane), cols->correlation[i]);

		if (*place)
			continue;
		*calls++ = (struct lull_call){
			.start_ns = cols->start_ns[i],
			.dur_ns = cols->dur_ns[i],
			.lane = lane,
			.name = cols->name[i],
		};
		*place = ++number;
	}
	l->calls.n = number;
}

void lull_link_init(struct lull_link *l, struct lull_reader *r)
{
	static const char *const numbers[] = { "lane", "correlation", NULL };
	static const char *const all[] = {
		"start_ns", "dur_ns", "lane", "name", "correlation", NULL
	};
	size_t n_lanes, n_processes;

	*l = (struct lull_link){ 0 };
	lull_vec_init(&l->calls, sizeof(struct lull_call));
	l->lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	lull_reader_dim(r, LULL_TABLE_process, &n_processes);
	lull_numbers_init(&l->numbers, n_processes);
	each_block(l, r, numbers, measure);
	lull_numbers_settle(&l->numbers);
	each_block(l, r, all, add_calls);
}

void lull_link_release(struct lull_link *l)
{
	lull_numbers_release(&l->numbers);
	lull_vec_release(&l->calls);
}

const struct lull_call *lull_link_find(const struct lull_link *l, const struct lull_work *work)
{
	const u32 *place = lull_numbers_find(&l->numbers, work->process, work->correlation);

	return place && *place ? (const struct lull_call *)l->calls.at + *place - 1 : NULL;
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
