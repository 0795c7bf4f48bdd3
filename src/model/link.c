#include "model/link.h"

static u64 number_of(u32 process, u32 correlation)
{
	return (u64)process << 32 | correlation;
}

static void add_calls(struct lull_link *l, const struct lull_cuda_call_cols *cols, size_t n,
		      const struct lull_lane_row *lanes)
{
	for (size_t i = 0; i < n; i++) {
		u32 lane = cols->lane[i], process = lane ? lanes[lane - 1].process : 0;
		bool is_new;
		u32 *ix = lull_map_add(&l->by_number, number_of(process, cols->correlation[i]),
				       &is_new);

		if (!is_new)
			continue;
		*ix = (u32)l->calls.n;
		*(struct lull_call *)lull_vec_push(&l->calls) = (struct lull_call){
			.start_ns = cols->start_ns[i],
			.dur_ns = cols->dur_ns[i],
			.lane = lane,
			.name = cols->name[i],
		};
	}
}

void lull_link_init(struct lull_link *l, struct lull_reader *r)
{
	static const char *const wanted[] = { "start_ns", "dur_ns", "lane", "name", "correlation" };
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);

	lull_map_init(&l->by_number);
	lull_vec_init(&l->calls, sizeof(struct lull_call));
	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, 0, UINT64_MAX);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		add_calls(l, &cols, n, lanes);
	lull_cursor_release(&c);
}

void lull_link_release(struct lull_link *l)
{
	lull_map_release(&l->by_number);
	lull_vec_release(&l->calls);
}

const struct lull_call *lull_link_find(const struct lull_link *l, const struct lull_work *work)
{
	const u32 *ix = lull_map_find(&l->by_number, number_of(work->process, work->correlation));

	return ix ? lull_vec_get(&l->calls, *ix) : NULL;
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
