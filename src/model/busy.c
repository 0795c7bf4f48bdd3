#include "model/busy.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

/*
 * A sweep over begins and ends. A slice of time holds the edges that lie in it, so that work which
 * crosses slices begins in one and ends in another; what runs is carried from slice to slice.
 */

/* 512 Ki works are 1 M edges of 64 bytes. */
#define SLICE_WORKS (1u << 19)

struct edge {
	u64 at_ns;
	u32 track;
	bool is_end;
	struct lull_work work;
};

/* What runs is counted by what it is: bit 1 << class of LULL_BUSY_*. */
enum class { COMPUTE, MEMORY, COLLECTIVE, N_CLASSES };

/* A track at the place where the sweep is. */
struct state {
	i64 n[N_CLASSES];
	u64 since_ns; /* begin of the piece */
	bool is_met;
	struct lull_work before; /* the last that ended */
};

struct sweep {
	struct lull_reader *reader;
	const u32 *tracks;
	struct lull_span window;
	struct lull_vec edges;
	struct lull_vec states; /* by track */
	bool *is_collective;	/* by launch */
	lull_busy_visit *visit;
	void *ctx;
};

/* ---- tracks ---- */

/* Which device row stands for each, by row id. */
static u32 *same_devices(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 *same = lull_alloc(n + 1, sizeof(*same));
	struct lull_map by_uuid;

	lull_map_init(&by_uuid);
	for (u32 id = 1; id <= n; id++) {
		u32 *first;

		same[id] = id;
		if (!devices[id - 1].uuid)
			continue;
		first = lull_map_add(&by_uuid, devices[id - 1].uuid, NULL);
		if (!*first)
			*first = id;
		same[id] = *first;
	}
	lull_map_release(&by_uuid);
	return same;
}

u32 *lull_busy_devices(struct lull_reader *r)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u32 *tracks = lull_alloc(n + 1, sizeof(*tracks)), *same = same_devices(r);

	for (size_t i = 0; i < n; i++)
		tracks[i + 1] = same[lanes[i].device];
	free(same);
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

/* ---- the sweep ---- */

static void add_edge(struct sweep *s, struct lull_span slice, const struct edge *edge)
{
	/* The last slice ends with the window and has its end, too. */
	bool is_last = slice.to_ns == s->window.to_ns && edge->at_ns == slice.to_ns;

	if (edge->at_ns >= slice.from_ns && (edge->at_ns < slice.to_ns || is_last))
		lull_vec_add(&s->edges, edge, 1);
}

static void collect(struct sweep *s, struct lull_span slice)
{
	struct lull_work_cursor c;
	struct edge edge = { 0 };

	s->edges.n = 0;
	lull_work_begin(&c, s->reader, LULL_WORK_ALL, LULL_WORK_WANT_CALL,
			(struct lull_span){ slice.from_ns, slice.to_ns + 1 });
	while (lull_work_next(&c, &edge.work)) {
		u64 end_ns = lull_work_end_ns(&edge.work);

		edge.track = s->tracks[edge.work.lane];
		if (!edge.track || end_ns < s->window.from_ns ||
		    edge.work.start_ns > s->window.to_ns)
			continue;
		edge.is_end = false;
		edge.at_ns = edge.work.start_ns > s->window.from_ns ? edge.work.start_ns
								    : s->window.from_ns;
		add_edge(s, slice, &edge);
		edge.is_end = true;
		edge.at_ns = end_ns < s->window.to_ns ? end_ns : s->window.to_ns;
		add_edge(s, slice, &edge);
	}
	lull_work_end(&c);
}

/* Begins come before ends of the same moment, so that work that follows at once leaves no gap. */
static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->is_end != y->is_end)
		return x->is_end - y->is_end;
	if (x->work.start_ns != y->work.start_ns)
		return x->work.start_ns < y->work.start_ns ? -1 : 1;
	return (x->work.lane > y->work.lane) - (x->work.lane < y->work.lane);
}

static unsigned running(const struct state *state)
{
	unsigned bits = 0;

	for (unsigned c = 0; c < N_CLASSES; c++)
		bits |= (state->n[c] ? 1u : 0u) << c;
	return bits;
}

static enum class class_of(const struct sweep *s, const struct lull_work *work) {
	if (work->kind & LULL_WORK_MEMORY) return MEMORY;
	return work->kind == LULL_WORK_KERNEL && s->is_collective[work->what] ? COLLECTIVE
									      : COMPUTE;
}

static void take(struct sweep *s, const struct edge *edge)
{
	struct state *state;
	unsigned before;
	struct lull_busy_piece piece = { .track = edge->track };

	if (edge->track >= s->states.n)
		lull_vec_extend(&s->states, edge->track + 1 - s->states.n);
	state = lull_vec_get(&s->states, edge->track);
	before = running(state);
	piece.span = (struct lull_span){ state->since_ns, edge->at_ns };
	piece.running = before;
	piece.before = &state->before;
	piece.after = before ? NULL : &edge->work;
	state->n[class_of(s, &edge->work)] += edge->is_end ? -1 : 1;
	if (running(state) != before) {
		if (state->is_met && piece.span.to_ns > piece.span.from_ns)
			s->visit(s->ctx, &piece);
		state->since_ns = edge->at_ns;
		state->is_met = true;
	}
	if (edge->is_end)
		state->before = edge->work;
}

void lull_busy_run(struct lull_reader *r, const u32 *tracks, struct lull_span window,
		   lull_busy_visit *visit, void *ctx)
{
	struct lull_span all = lull_span_cut(lull_span_recording(r), window.from_ns, window.to_ns);
	struct sweep s = {
		.reader = r, .tracks = tracks, .window = all, .visit = visit, .ctx = ctx
	};
	u64 n_slices = lull_work_count(r, LULL_WORK_ALL) / SLICE_WORKS + 1;
	u64 slice_ns = (all.to_ns - all.from_ns) / n_slices + 1;

	s.is_collective = lull_work_collectives(r);
	lull_vec_init(&s.edges, sizeof(struct edge));
	lull_vec_init(&s.states, sizeof(struct state));
	for (u64 at_ns = all.from_ns; at_ns < all.to_ns;) {
		struct lull_span slice = { at_ns, all.to_ns };
		const struct edge *edges;

		if (slice_ns < all.to_ns - at_ns)
			slice.to_ns = at_ns + slice_ns;
		collect(&s, slice);
		edges = s.edges.at;
		if (s.edges.n)
			qsort(s.edges.at, s.edges.n, sizeof(struct edge), by_time);
		for (size_t i = 0; i < s.edges.n; i++)
			take(&s, &edges[i]);
		at_ns = slice.to_ns;
	}
	free(s.is_collective);
	lull_vec_release(&s.edges);
	lull_vec_release(&s.states);
}
