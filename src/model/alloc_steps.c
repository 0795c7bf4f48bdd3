#include "model/alloc_steps.h"

#include <stdlib.h>

#include "base/mem.h"

/* The thread of a process with most steps, 0 if it has none. */
static u32 loop_of(const struct lull_steps *steps, const struct lull_lane_row *lanes, u32 process)
{
	const struct lull_step *s = steps->all.at;
	u32 best = 0, lane = 0;
	size_t n = 0, most = 0;

	for (size_t i = 0; i < steps->all.n; i++) {
		n = s[i].lane == lane ? n + 1 : 1;
		lane = s[i].lane;
		if (lane && lanes[lane - 1].process == process && n > most) {
			most = n;
			best = lane;
		}
	}
	return best;
}

static void add_steps(struct lull_alloc_steps *s, const struct lull_allocs *a,
		      const struct lull_lane_row *lanes, u32 pool_ix)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&a->pools, pool_ix);
	const struct lull_step *steps = s->steps.all.at;
	u32 lane = loop_of(&s->steps, lanes, pool->process);

	for (size_t i = 0; lane && i < s->steps.all.n; i++) {
		struct lull_span host = lull_step_host(&steps[i]);

		if (steps[i].lane == lane)
			*(struct lull_alloc_step *)lull_vec_push(&s->all) =
				(struct lull_alloc_step){
					.number = steps[i].number,
					.start_ns = host.from_ns,
					.end_ns = host.to_ns,
					.pool = pool_ix,
				};
	}
}

/* What a pool had at the last moment up to now. */
struct state {
	u64 allocated_bytes, reserved_bytes;
	u32 step; /* index of the step to come or to be in */
	u32 end;  /* of the pool's steps */
	bool is_in;
};

static void enter(struct lull_alloc_step *step, const struct state *now)
{
	step->begin_bytes = step->peak_bytes = step->end_bytes = now->allocated_bytes;
	step->reserved_bytes = step->peak_reserved_bytes = now->reserved_bytes;
}

/* Begin and end the steps up to this moment. */
static void advance(struct lull_alloc_step *steps, struct state *now, u64 at_ns)
{
	while (now->step < now->end) {
		struct lull_alloc_step *step = &steps[now->step];

		if (!now->is_in && step->start_ns <= at_ns) {
			enter(step, now);
			now->is_in = true;
		}
		if (!now->is_in || step->end_ns > at_ns)
			return;
		now->is_in = false;
		now->step++;
	}
}

static void follow(struct lull_alloc_steps *s, const struct lull_allocs *a, struct state *states)
{
	const struct lull_alloc_moment *m = a->moments.at;
	struct lull_alloc_step *steps = s->all.at;

	for (size_t i = 0; i < a->moments.n; i++, m++) {
		struct state *now = &states[m->pool];
		struct lull_alloc_step *step;

		advance(steps, now, m->at_ns);
		now->allocated_bytes = m->allocated_bytes;
		now->reserved_bytes = m->reserved_bytes;
		if (!now->is_in)
			continue;
		step = &steps[now->step];
		step->n_allocations += m->size_bytes > 0;
		step->end_bytes = m->allocated_bytes;
		step->reserved_bytes = m->reserved_bytes;
		if (m->allocated_bytes > step->peak_bytes) {
			step->peak_bytes = m->allocated_bytes;
			step->peak_reserved_bytes = m->reserved_bytes;
		}
	}
	for (size_t i = 0; i < a->pools.n; i++)
		advance(steps, &states[i], UINT64_MAX);
}

static void count_left(struct lull_alloc_steps *s, const struct lull_allocs *a)
{
	const struct lull_alloc_block *block = a->blocks.at;

	for (size_t i = 0; i < a->blocks.n; i++, block++) {
		u32 step = lull_alloc_left_in(s, block);

		if (step)
			((struct lull_alloc_step *)s->all.at)[step - 1].left_bytes +=
				block->size_bytes;
	}
}

void lull_alloc_steps_init(struct lull_alloc_steps *s, const struct lull_allocs *a)
{
	struct state *states = lull_alloc(a->pools.n + 1, sizeof(*states));
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(a->reader, LULL_TABLE_lane, &n);

	*s = (struct lull_alloc_steps){ .first_ix = lull_alloc(a->pools.n + 1, sizeof(u32)) };
	lull_vec_init(&s->all, sizeof(struct lull_alloc_step));
	lull_steps_init_any(&s->steps, a->reader, a->window);
	for (u32 i = 0; i < a->pools.n; i++) {
		const struct lull_alloc_pool *pool = lull_vec_get(&a->pools, i);

		states[i].step = s->first_ix[i] = (u32)s->all.n;
		states[i].allocated_bytes = pool->before_bytes;
		add_steps(s, a, lanes, i);
		states[i].end = s->first_ix[i + 1] = (u32)s->all.n;
	}
	follow(s, a, states);
	count_left(s, a);
	free(states);
}

void lull_alloc_steps_release(struct lull_alloc_steps *s)
{
	lull_steps_release(&s->steps);
	lull_vec_release(&s->all);
	free(s->first_ix);
}

u32 lull_alloc_left_in(const struct lull_alloc_steps *s, const struct lull_alloc_block *block)
{
	const struct lull_alloc_step *steps = s->all.at;
	u32 low = s->first_ix[block->pool], end = s->first_ix[block->pool + 1], high = end;

	/* What a program keeps it gives back when it ends: that is no step any more. */
	if (block->end_ns != UINT64_MAX && (low == end || block->end_ns <= steps[end - 1].end_ns))
		return 0;
	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (steps[mid].start_ns <= block->begin_ns)
			low = mid + 1;
		else
			high = mid;
	}
	/* The step is low - 1; of those after it one at least has to be there. */
	if (low == s->first_ix[block->pool] || low >= end ||
	    steps[low - 1].end_ns < block->begin_ns)
		return 0;
	return low;
}
