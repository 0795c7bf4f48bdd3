#include "timeline/detail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "timeline/cache.h"
#include "timeline/idle.h"
#include "timeline/idle_cause.h"
#include "timeline/name.h"

/*
 * The pieces of a device in a window: those that ask for its busy time ask for the idle one next.
 */
struct swept {
	u32 group;
	struct lull_span span;
	struct lull_vec busy, idle; /* struct lull_span */
};

struct lull_detail {
	struct lull_cache *cache;
	struct swept swept;
};

struct lull_detail *lull_detail_new(struct lull_timeline *t)
{
	struct lull_detail *d = lull_alloc(1, sizeof(*d));

	d->cache = lull_cache_new(t);
	lull_vec_init(&d->swept.busy, sizeof(struct lull_span));
	lull_vec_init(&d->swept.idle, sizeof(struct lull_span));
	return d;
}

void lull_detail_free(struct lull_detail *d)
{
	if (!d)
		return;
	lull_cache_free(d->cache);
	lull_vec_release(&d->swept.busy);
	lull_vec_release(&d->swept.idle);
	free(d);
}

bool lull_detail_ahead(struct lull_timeline *t)
{
	return lull_cache_ahead(t->detail->cache);
}

u32 lull_detail_device(const struct lull_timeline *t, u32 group)
{
	return lull_cache_device(t->detail->cache, group);
}

/* ---- idle time ---- */

static void on_piece(void *ctx, struct lull_span span, bool is_busy)
{
	struct swept *swept = ctx;

	lull_vec_add(is_busy ? &swept->busy : &swept->idle, &span, 1);
}

static void add_work(void *ctx, const struct lull_tl_event *event, size_t block_ix)
{
	(void)block_ix;
	lull_idle_add(ctx, event->start_ns, event->end_ns);
}

/* From the first to the last work of a device: outside of it nothing is known to be idle. */
static struct lull_span life_of(const struct lull_timeline *t, u32 group)
{
	u32 busy = lull_timeline_find(t, LULL_NO_ROW, group, 0);
	const struct lull_level *level;

	if (busy == LULL_NO_ROW || !lull_timeline_lane(t, busy)->lod.n_levels)
		return (struct lull_span){ 0, 0 };
	level = &lull_timeline_lane(t, busy)->lod.levels[0];
	if (!level->n)
		return (struct lull_span){ 0, 0 };
	return (struct lull_span){ level->recs[0].start_ns, level->recs[level->n - 1].end_ns };
}

static bool is_work_of(const struct lull_timeline *t, const struct lull_tl_lane *lane, u32 group)
{
	if (lane->source == LULL_NO_ROW ||
	    !(lull_sources[lane->source].flags & LULL_SOURCE_IS_WORK))
		return false;
	return lull_detail_device(t, lane->group) == group;
}

/* Before the first and after the last work in the window the device is idle, too. */
static void add_edges(struct swept *swept, struct lull_span span)
{
	const struct lull_span *busy = swept->busy.at;
	struct lull_span edge = { span.from_ns, span.to_ns };
	struct lull_span *idle;

	if (!swept->busy.n) {
		lull_vec_add(&swept->idle, &edge, 1);
		return;
	}
	if (busy[0].from_ns > span.from_ns) {
		edge.to_ns = busy[0].from_ns;
		lull_vec_push(&swept->idle);
		idle = swept->idle.at;
		memmove(idle + 1, idle, (swept->idle.n - 1) * sizeof(*idle));
		idle[0] = edge;
	}
	edge = (struct lull_span){ busy[swept->busy.n - 1].to_ns, span.to_ns };
	if (edge.from_ns < edge.to_ns)
		lull_vec_add(&swept->idle, &edge, 1);
}

/*
 * The busy and idle pieces of a device inside `span`; idle ones at its edges are cut there, busy
 * ones are whole.
 */
static const struct swept *sweep(struct lull_timeline *t, u32 group, struct lull_span span)
{
	struct swept *swept = &t->detail->swept;
	struct lull_span life = life_of(t, group);
	struct lull_idle_sweep s;

	if (swept->group == group && swept->span.from_ns == span.from_ns &&
	    swept->span.to_ns == span.to_ns)
		return swept;
	swept->group = group;
	swept->span = span;
	swept->busy.n = swept->idle.n = 0;
	span = lull_span_cut(span, life.from_ns, life.to_ns);
	if (span.to_ns <= span.from_ns)
		return swept;
	lull_idle_init(&s, on_piece, swept);
	for (u32 i = 0; i < t->lanes.n; i++) {
		if (is_work_of(t, lull_timeline_lane(t, i), group))
			lull_cache_each(t->detail->cache, i, span, add_work, &s);
	}
	lull_idle_advance(&s, UINT64_MAX);
	lull_idle_release(&s);
	add_edges(swept, span);
	return swept;
}

/* The same as pieces (struct lull_idle), idle ones with their causes. */
static void named_pieces(struct lull_timeline *t, const struct lull_tl_lane *lane,
			 struct lull_span span, struct lull_vec *out)
{
	const struct swept *swept = sweep(t, lane->group, span);
	const struct lull_span *busy = swept->busy.at;

	if (lane->line == LULL_LINE_IDLE)
		lull_idle_with_causes(t, lane->group, span, &swept->idle, out);
	for (size_t i = 0; i < swept->busy.n && lane->line == LULL_LINE_BUSY; i++)
		*(struct lull_idle *)lull_vec_push(out) =
			(struct lull_idle){ busy[i], LULL_NAME_FIXED | LULL_FIXED_BUSY, 0 };
}

/* ---- folding ---- */

static void fold_event(void *ctx, const struct lull_tl_event *e, size_t block_ix)
{
	struct lull_rec rec = { .start_ns = e->start_ns,
				.end_ns = e->end_ns,
				.busy_ns = e->end_ns - e->start_ns,
				.name = e->name,
				.count = 1 };

	(void)block_ix;
	rec.share[e->class] = 255;
	lull_fold_add(ctx, &rec);
}

static void fold_device(struct lull_timeline *t, u32 lane, struct lull_span span,
			struct lull_fold *fold)
{
	const struct lull_idle *p;
	struct lull_vec pieces;

	lull_vec_init(&pieces, sizeof(struct lull_idle));
	named_pieces(t, lull_timeline_lane(t, lane), span, &pieces);
	p = pieces.at;
	for (size_t i = 0; i < pieces.n; i++) {
		struct lull_rec rec = { .start_ns = p[i].span.from_ns,
					.end_ns = p[i].span.to_ns,
					.busy_ns = p[i].span.to_ns - p[i].span.from_ns,
					.name = p[i].cause,
					.count = 1 };

		rec.share[p[i].family] = 255;
		lull_fold_add(fold, &rec);
	}
	lull_vec_release(&pieces);
}

void lull_detail_fold(struct lull_timeline *t, u32 lane, struct lull_span span,
		      struct lull_fold *fold)
{
	const struct lull_tl_lane *l = lull_timeline_lane(t, lane);
	const struct lull_level *level = lull_lod_level(&l->lod, fold->log2);

	lull_cache_wish(t->detail->cache, l, span, fold->log2);
	if (level) {
		for (size_t i = lull_level_first(level, span.from_ns ? span.from_ns - 1 : 0);
		     i < level->n && level->recs[i].start_ns < span.to_ns; i++)
			lull_fold_add(fold, &level->recs[i]);
	} else if (l->source == LULL_NO_ROW) {
		fold_device(t, lane, span, fold);
	} else {
		lull_cache_each(t->detail->cache, lane, span, fold_event, fold);
	}
	lull_fold_finish(fold);
}

/* ---- single events ---- */

struct list_ctx {
	struct lull_vec *out;
	size_t first, limit;
	u32 lane;
};

static void list_event(void *ctx, const struct lull_tl_event *e, size_t block_ix)
{
	struct list_ctx *c = ctx;
	struct lull_found *found;

	if (c->out->n - c->first >= c->limit)
		return;
	found = lull_vec_push(c->out);
	*found = (struct lull_found){
		.event = *e, .lane = c->lane, .block_ix = block_ix, .has_row = true
	};
}

/* Whether a piece that touches `span` may go on outside of `wide`. */
static bool is_cut(const struct lull_vec *pieces, struct lull_span span, struct lull_span wide)
{
	const struct lull_idle *p = pieces->at;

	for (size_t i = 0; i < pieces->n; i++) {
		if (p[i].span.from_ns <= wide.from_ns && p[i].span.to_ns > span.from_ns)
			return true;
		if (p[i].span.to_ns >= wide.to_ns && p[i].span.from_ns < span.to_ns)
			return true;
	}
	return false;
}

/*
 * Pieces that reach the edges of the window go on outside: look further until their ends are met.
 */
static void list_pieces(struct lull_timeline *t, u32 lane, struct lull_span span,
			struct list_ctx *ctx)
{
	const struct lull_tl_lane *l = lull_timeline_lane(t, lane);
	struct lull_span life = life_of(t, l->group), wide = span;
	u64 air = span.to_ns - span.from_ns + 1000000;
	const struct lull_idle *p;
	struct lull_vec pieces;

	lull_vec_init(&pieces, sizeof(struct lull_idle));
	do {
		wide.from_ns = wide.from_ns > air ? wide.from_ns - air : 0;
		wide.to_ns = lull_span_end_ns(wide.to_ns, air);
		pieces.n = 0;
		named_pieces(t, l, wide, &pieces);
		air *= 8;
	} while (is_cut(&pieces, span, wide) &&
		 (wide.from_ns > life.from_ns || wide.to_ns < life.to_ns));
	p = pieces.at;
	for (size_t i = 0; i < pieces.n; i++) {
		struct lull_tl_event e = { .start_ns = p[i].span.from_ns,
					   .end_ns = p[i].span.to_ns,
					   .name = p[i].cause,
					   .group = l->group,
					   .class = p[i].family };

		if (e.end_ns < span.from_ns || e.start_ns >= span.to_ns)
			continue;
		list_event(ctx, &e, 0);
		((struct lull_found *)lull_vec_get(ctx->out, ctx->out->n - 1))->has_row = false;
	}
	lull_vec_release(&pieces);
}

/* Lanes that are of no table and no device time are kept whole. */
static void list_kept(struct lull_timeline *t, u32 lane, struct lull_span span,
		      struct list_ctx *ctx)
{
	const struct lull_tl_lane *l = lull_timeline_lane(t, lane);
	const struct lull_level *level = &l->lod.levels[0];

	for (size_t i = lull_level_first(level, span.from_ns ? span.from_ns - 1 : 0);
	     l->lod.n_levels && i < level->n && level->recs[i].start_ns < span.to_ns; i++) {
		struct lull_tl_event e = { .start_ns = level->recs[i].start_ns,
					   .end_ns = level->recs[i].end_ns,
					   .name = level->recs[i].name,
					   .group = l->group };

		list_event(ctx, &e, 0);
		((struct lull_found *)lull_vec_get(ctx->out, ctx->out->n - 1))->has_row = false;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct lull_found *x = a, *y = b;

	if (x->event.start_ns != y->event.start_ns)
		return x->event.start_ns < y->event.start_ns ? -1 : 1;
	return (x->event.end_ns > y->event.end_ns) - (x->event.end_ns < y->event.end_ns);
}

void lull_detail_events(struct lull_timeline *t, u32 lane, struct lull_span span, size_t limit,
			struct lull_vec *out)
{
	struct list_ctx c = { .out = out, .first = out->n, .limit = limit, .lane = lane };
	struct lull_found *at;

	if (lull_timeline_lane(t, lane)->source != LULL_NO_ROW)
		lull_cache_each(t->detail->cache, lane, span, list_event, &c);
	else if (lull_timeline_lane(t, lane)->line > LULL_LINE_IDLE)
		list_kept(t, lane, span, &c);
	else
		list_pieces(t, lane, span, &c);
	at = out->at;
	if (out->n > c.first)
		lull_sort(at + c.first, out->n - c.first, sizeof(*at), by_start);
}
