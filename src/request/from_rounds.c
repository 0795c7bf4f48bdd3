/*
 * from_rounds - where nobody names requests, and no connection shows them: the rounds of the loop.
 *
 * A program that generates text, or scores one batch after the other, has no server. A round of its
 * loop (model/rounds.h) is what somebody waits for, so each round counts as a request, from its
 * start to the start of the next. The thread that launches its work serves it all the time.
 *
 * A program that trains has steps and no requests. Rounds that are only groups of equal launches
 * say nothing about the program's own loop, and are not taken.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "model/step.h"
#include "request/requests_int.h"

/* How many steps from `first` on are of its thread. */
static size_t n_of_lane(const struct lull_step *steps, size_t first, size_t n)
{
	size_t i = first;

	while (i < n && steps[i].lane == steps[first].lane)
		i++;
	return i - first;
}

/* Whether another thread of the same process has more steps. */
static bool is_outdone(const struct lull_request_reader *q, const struct lull_vec *all,
		       size_t first, size_t n)
{
	const struct lull_step *steps = all->at;
	u32 process = q->lanes[steps[first].lane - 1].process;

	for (size_t i = 0, other; i < all->n; i += other) {
		other = n_of_lane(steps, i, all->n);
		if (i != first && steps[i].lane && q->lanes[steps[i].lane - 1].process == process &&
		    (other > n || (other == n && i < first)))
			return true;
	}
	return false;
}

/* The thread of this process that makes most CUDA calls in [from_ns, to_ns), else `lane`. */
static u32 launching_lane(const struct lull_request_reader *q, u32 lane, u64 from_ns, u64 to_ns)
{
	u32 process = q->lanes[lane - 1].process, best = lane;
	u64 *counts = lull_alloc(q->n_lanes + 1, sizeof(*counts));
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_cuda_call, from_ns, to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.lane[i] && q->lanes[cols.lane[i] - 1].process == process &&
			    cols.start_ns[i] >= from_ns && cols.start_ns[i] < to_ns)
				counts[cols.lane[i]]++;
	lull_cursor_release(&c);
	for (u32 i = 1; i <= q->n_lanes; i++)
		best = counts[i] > counts[best] ? i : best;
	free(counts);
	return best;
}

static void take(struct lull_request_reader *q, const struct lull_step *step, u32 lane)
{
	u32 process = q->lanes[lane - 1].process;
	struct lull_span span = lull_step_host(step);

	*(struct lull_one_request *)lull_vec_push(&q->to->all) =
		(struct lull_one_request){ .id = step->number,
					   .start_ns = span.from_ns,
					   .end_ns = span.to_ns,
					   .process = process,
					   .lane = lane,
					   .is_round = true };
	*(struct lull_request_slice *)lull_vec_push(&q->slices) =
		(struct lull_request_slice){ .from_ns = span.from_ns,
					     .to_ns = span.to_ns,
					     .id = step->number,
					     .process = process,
					     .lane = lane,
					     .request = LULL_NO_REQUEST };
}

void lull_request_from_rounds(struct lull_request_reader *q)
{
	struct lull_steps s;
	const struct lull_step *steps;
	u32 lane;

	lull_steps_init_any(&s, q->reader, q->window);
	steps = s.all.at;
	for (size_t i = 0, n; i < s.all.n; i += n) {
		n = n_of_lane(steps, i, s.all.n);
		if (!steps[i].lane || steps[i].source == LULL_ROUNDS_GROUP ||
		    is_outdone(q, &s.all, i, n))
			continue;
		q->to->rounds = steps[i].source;
		lane = launching_lane(q, steps[i].lane, lull_step_host(&steps[i]).from_ns,
				      lull_step_host(&steps[i + n - 1]).from_ns);
		for (size_t k = i; k < i + n; k++)
			take(q, &steps[k], lane);
	}
	lull_steps_release(&s);
}
