#include "model/busy.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "model/device.h"

/*
 * A sweep over begins and ends. Work comes by its start; what runs waits in a heap for its end.
 */

/* What runs is counted by what it is: bit 1 << class of LULL_BUSY_*. */
enum class { COMPUTE, COPY, COLLECTIVE, N_CLASSES };

/* A track at the place where the sweep is. */
struct state {
	i64 n[N_CLASSES];
	u64 since_ns; /* begin of the piece */
	bool is_met;
	struct lull_work before; /* the last that ended */
};

/* Work that has begun. */
struct running {
	u64 end_ns; /* cut at the end of the window */
	struct lull_work work;
};

struct sweep {
	const u32 *tracks;
	struct lull_vec heap;	/* struct running, the first end on top */
	struct lull_vec states; /* by track */
	bool *is_collective;	/* by launch */
	lull_busy_visit *visit;
	void *ctx;
};

/* ---- tracks ---- */

u32 *lull_busy_devices(struct lull_reader *r)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u32 *tracks = lull_alloc(n + 1, sizeof(*tracks)), *rows = lull_device_rows(r);

	for (size_t i = 0; i < n; i++)
		tracks[i + 1] = rows[lanes[i].device];
	free(rows);
	return tracks;
}

u32 *lull_busy_processes(struct lull_reader *r)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u32 *tracks = lull_alloc(n + 1, sizeof(*tracks));

	for (size_t i = 0; i < n; i++)
		tracks[i + 1] = lanes[i].process;
	return tracks;
}

/* ---- what runs ---- */

/* Of ends at the same moment that of the earlier begin comes first. */
static bool ends_before(const struct running *x, const struct running *y)
{
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns;
	if (x->work.start_ns != y->work.start_ns)
		return x->work.start_ns < y->work.start_ns;
	return x->work.lane < y->work.lane;
}

static void push(struct lull_vec *heap, const struct running *running)
{
	struct running *all;
	size_t at = heap->n;

	lull_vec_push(heap);
	all = heap->at;
	while (at && ends_before(running, &all[(at - 1) / 2])) {
		all[at] = all[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	all[at] = *running;
}

static struct running pop(struct lull_vec *heap)
{
	struct running *all = heap->at, top = all[0], last = all[--heap->n];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < heap->n) {
		if (child + 1 < heap->n && ends_before(&all[child + 1], &all[child]))
			child++;
		if (!ends_before(&all[child], &last))
			break;
		all[at] = all[child];
		at = child;
	}
	if (heap->n)
		all[at] = last;
	return top;
}

/* ---- the sweep ---- */

static unsigned running_bits(const struct state *state)
{
	unsigned bits = 0;

	for (unsigned c = 0; c < N_CLASSES; c++)
		bits |= (state->n[c] ? 1u : 0u) << c;
	return bits;
}

static enum class class_of(const struct sweep *s, const struct lull_work *work) {
	if (work->kind == LULL_WORK_MEMCPY) return COPY;
	return work->kind == LULL_WORK_KERNEL && s->is_collective[work->what] ? COLLECTIVE
									      : COMPUTE;
}

/* Work begins or ends at this moment. */
static void take(struct sweep *s, const struct lull_work *work, u64 at_ns, bool is_end)
{
	u32 track = s->tracks[work->lane];
	struct state *state;
	struct lull_busy_piece piece;
	unsigned before;

	if (track >= s->states.n)
		lull_vec_extend(&s->states, track + 1 - s->states.n);
	state = lull_vec_get(&s->states, track);
	before = running_bits(state);
	state->n[class_of(s, work)] += is_end ? -1 : 1;
	if (running_bits(state) != before) {
		piece = (struct lull_busy_piece){ .track = track,
						  .span = { state->since_ns, at_ns },
						  .running = before,
						  .before = &state->before,
						  .after = before ? NULL : work };
		if (state->is_met && at_ns > state->since_ns)
			s->visit(s->ctx, &piece);
		state->since_ns = at_ns;
		state->is_met = true;
	}
	if (is_end)
		state->before = *work;
}

/* End what ends before this moment: work that follows at once leaves no gap. */
static void end_before(struct sweep *s, u64 at_ns)
{
	while (s->heap.n && ((const struct running *)s->heap.at)->end_ns < at_ns) {
		struct running ended = pop(&s->heap);

		take(s, &ended.work, ended.end_ns, true);
	}
}

void lull_busy_run(struct lull_reader *r, const u32 *tracks, struct lull_span window,
		   lull_busy_visit *visit, void *ctx)
{
	struct lull_span all = lull_span_cut(lull_span_recording(r), window.from_ns, window.to_ns);
	struct sweep s = { .tracks = tracks, .visit = visit, .ctx = ctx };
	struct lull_work_order order;
	const struct lull_work *work;

	s.is_collective = lull_work_collectives(r);
	lull_vec_init(&s.heap, sizeof(struct running));
	lull_vec_init(&s.states, sizeof(struct state));
	lull_work_order_begin(&order, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL, all);
	while ((work = lull_work_order_next(&order))) {
		u64 start_ns = work->start_ns > all.from_ns ? work->start_ns : all.from_ns;
		struct running running = { lull_work_end_ns(work), *work };

		if (!tracks[work->lane] || running.end_ns < all.from_ns ||
		    work->start_ns > all.to_ns)
			continue;
		if (running.end_ns > all.to_ns)
			running.end_ns = all.to_ns;
		end_before(&s, start_ns);
		take(&s, work, start_ns, false);
		push(&s.heap, &running);
	}
	end_before(&s, UINT64_MAX);
	lull_work_order_end(&order);
	free(s.is_collective);
	lull_vec_release(&s.heap);
	lull_vec_release(&s.states);
}
