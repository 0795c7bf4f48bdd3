/*
 * memory: memory of a framework in use over time, and which operators requested it.
 *
 *	{"pools": [{"name", "pid", "peak", "peak_at", "peak_reserved", "max_reserved", "end",
 *	  "n_allocations", "places": [{"name", "line", "bytes"}, ...],
 *	  "points": [[at, in use, reserved, bytes of each place ...], ...]}, ...]}
 *
 * Places are those with most memory at the peak. Time is cut into 400 pieces; the point of a piece
 * is the time with most memory in use, so that no peak is lost. The fullest pool comes first.
 */
#include "page/page.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "report/alloc.h"

#define MAX_POOLS  16
#define MAX_PLACES 7 /* and all others: as many as there are colours */
#define MAX_POINTS 400

struct point {
	u64 at_ns, allocated_bytes, reserved_bytes;
	u64 place_bytes[MAX_PLACES];
};

struct memory {
	const struct lull_allocs *allocs;
	u64 origin_ns;
	u32 pool;		    /* that is looked at */
	u32 n_places;		    /* of it */
	u32 places[MAX_PLACES];	    /* numbers */
	u64 peak_bytes[MAX_PLACES]; /* of them at the peak */
	u8 *ranks;		    /* by number of a place: rank + 1 */
};

static const struct lull_alloc_pool *pool_of(const struct memory *m)
{
	return lull_vec_get(&m->allocs->pools, m->pool);
}

/* What the places of the pool held at its peak. */
static u64 *sum_places(const struct memory *m, size_t n_places)
{
	const struct lull_alloc_block *block = m->allocs->blocks.at;
	u64 *sums = lull_alloc(n_places + 1, sizeof(*sums)), peak_ns = pool_of(m)->peak_ns;

	for (size_t i = 0; i < m->allocs->blocks.n; i++, block++)
		if (block->pool == m->pool && block->begin_ns <= peak_ns && block->end_ns > peak_ns)
			sums[block->place] += block->size_bytes;
	return sums;
}

static void choose_places(struct memory *m, size_t n_places)
{
	u64 *sums = sum_places(m, n_places);

	m->n_places = 0;
	for (size_t i = 0; i < n_places; i++)
		m->ranks[i] = 0;
	while (m->n_places < MAX_PLACES) {
		size_t best = 0;

		for (size_t i = 1; i < n_places; i++)
			best = sums[i] > sums[best] ? i : best;
		if (!n_places || !sums[best])
			break;
		m->peak_bytes[m->n_places] = sums[best];
		m->places[m->n_places++] = (u32)best;
		m->ranks[best] = (u8)m->n_places;
		sums[best] = 0;
	}
	free(sums);
}

static void put_point(struct lull_json *j, const struct memory *m, const struct point *p)
{
	lull_json_array(j);
	lull_json_u64(j, p->at_ns > m->origin_ns ? p->at_ns - m->origin_ns : 0);
	lull_json_u64(j, p->allocated_bytes);
	lull_json_u64(j, p->reserved_bytes);
	for (u32 i = 0; i < m->n_places; i++)
		lull_json_u64(j, p->place_bytes[i]);
	lull_json_end(j);
}

/* First and last moment of the pool inside the window. */
static struct lull_span time_of(const struct memory *m)
{
	const struct lull_alloc_moment *moments = m->allocs->moments.at;
	struct lull_span span = { UINT64_MAX, 0 };

	for (size_t i = 0; i < m->allocs->moments.n; i++) {
		if (moments[i].pool != m->pool ||
		    !lull_span_holds(m->allocs->window, moments[i].at_ns, 0))
			continue;
		span.from_ns = span.from_ns == UINT64_MAX ? moments[i].at_ns : span.from_ns;
		span.to_ns = moments[i].at_ns;
	}
	return span;
}

static void follow(struct point *now, const struct memory *m, const struct lull_alloc_moment *at)
{
	const struct lull_alloc_block *block =
		at->block ? lull_vec_get(&m->allocs->blocks, at->block - 1) : NULL;
	u8 rank = block ? m->ranks[block->place] : 0;

	now->at_ns = at->at_ns;
	now->allocated_bytes = at->allocated_bytes;
	now->reserved_bytes = at->reserved_bytes;
	if (rank && at->size_bytes > 0)
		now->place_bytes[rank - 1] += block->size_bytes;
	else if (rank)
		now->place_bytes[rank - 1] -= block->size_bytes;
}

static void put_points(struct lull_json *j, const struct memory *m)
{
	const struct lull_alloc_moment *moments = m->allocs->moments.at;
	struct point now = { 0 }, best = { 0 };
	struct lull_span span = time_of(m);
	u64 piece_ns = span.to_ns > span.from_ns ? (span.to_ns - span.from_ns) / MAX_POINTS + 1 : 1;
	u64 last = UINT64_MAX;

	lull_json_key(j, "points");
	lull_json_array(j);
	for (size_t i = 0; i < m->allocs->moments.n; i++) {
		u64 piece;

		if (moments[i].pool != m->pool)
			continue;
		follow(&now, m, &moments[i]);
		if (!lull_span_holds(m->allocs->window, now.at_ns, 0))
			continue;
		piece = (now.at_ns - span.from_ns) / piece_ns;
		if (piece != last && last != UINT64_MAX)
			put_point(j, m, &best);
		if (piece != last || now.allocated_bytes > best.allocated_bytes)
			best = now;
		last = piece;
	}
	if (last != UINT64_MAX)
		put_point(j, m, &best);
	if (last != UINT64_MAX && best.at_ns != now.at_ns)
		put_point(j, m, &now);
	lull_json_end(j);
}

static void put_places(struct lull_json *j, const struct memory *m)
{
	struct lull_reader *r = m->allocs->reader;
	struct lull_str text = LULL_STR_INIT;

	lull_json_key(j, "places");
	lull_json_array(j);
	for (u32 i = 0; i < m->n_places; i++) {
		const struct lull_alloc_place *place =
			lull_intern_get(&m->allocs->places, m->places[i]);

		lull_json_object(j);
		lull_str_clear(&text);
		lull_alloc_name(&text, r, place);
		lull_page_pair_text(j, "name", lull_str_text(&text));
		lull_str_clear(&text);
		lull_op_stacks_name(&text, r, place->frame);
		lull_page_pair_text(j, "line", lull_str_text(&text));
		lull_page_pair_u64(j, "bytes", m->peak_bytes[i]);
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_str_release(&text);
}

static void put_pool(struct lull_json *j, struct memory *m)
{
	const struct lull_alloc_pool *pool = pool_of(m);
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(m->allocs->reader, LULL_TABLE_process, &n);
	struct lull_str name = LULL_STR_INIT;

	choose_places(m, m->allocs->places.offsets.n);
	lull_alloc_pool_name(&name, m->allocs, m->pool);
	lull_json_object(j);
	lull_page_pair_text(j, "name", lull_str_text(&name));
	lull_page_pair_u64(j, "pid", pool->process ? processes[pool->process - 1].pid : 0);
	lull_page_pair_u64(j, "peak", pool->peak_bytes);
	lull_page_pair_u64(j, "peak_at",
			   pool->peak_ns > m->origin_ns ? pool->peak_ns - m->origin_ns : 0);
	lull_page_pair_u64(j, "peak_reserved", pool->peak_reserved_bytes);
	lull_page_pair_u64(j, "max_reserved", pool->max_reserved_bytes);
	lull_page_pair_u64(j, "end", pool->end_bytes);
	lull_page_pair_u64(j, "n_allocations", pool->n_allocations);
	put_places(j, m);
	put_points(j, m);
	lull_json_end(j);
	lull_str_release(&name);
}

static void put_pools(struct lull_json *j, struct lull_allocs *allocs, u64 origin_ns)
{
	struct memory m = {
		.allocs = allocs,
		.origin_ns = origin_ns,
		.ranks = lull_alloc(allocs->places.offsets.n + 1, 1),
	};
	u32 *order = lull_allocs_by_peak(allocs);

	for (size_t i = 0; i < allocs->pools.n && i < MAX_POOLS; i++) {
		m.pool = order[i];
		if (pool_of(&m)->peak_bytes)
			put_pool(j, &m);
	}
	free(order);
	free(m.ranks);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	u64 origin_ns = q->report->timeline->origin_ns;
	struct lull_allocs allocs;
	struct lull_span window;
	struct lull_json j;
	bool has_any = lull_reader_stats(q->reader, LULL_TABLE_alloc).n_rows > 0;

	if (lull_args_span(q->args, origin_ns, &window, err))
		return err->code;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_json_key(&j, "pools");
	lull_json_array(&j);
	if (has_any) {
		lull_allocs_init(&allocs, q->reader, window);
		put_pools(&j, &allocs, origin_ns);
		lull_allocs_release(&allocs);
	}
	lull_json_end(&j);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_memory = {
	.name = "memory",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
