#include "timeline/detail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "timeline/idle.h"
#include "timeline/idle_cause.h"
#include "timeline/name.h"
#include "trace/file.h"

#define CACHE_BYTES (64u << 20)
#define MAX_CACHED  256u

/* The events of one lane in a decoded block. */
struct run {
	u32 lane;
	u32 first, n;
	u64 max_end_ns; /* of all of them */
};

struct cached {
	size_t block_ix;
	u32 source;
	u64 used;
	struct lull_tl_event *events; /* by lane, then start */
	size_t n;
	struct run *runs;
	size_t n_runs;
};

struct lull_detail {
	struct lull_timeline *t;
	struct lull_blocks blocks;
	struct cached cache[MAX_CACHED];
	size_t n_cached;
	u64 cached_bytes;
	u64 clock;
};

struct lull_detail *lull_detail_new(struct lull_timeline *t)
{
	struct lull_detail *d = lull_alloc(1, sizeof(*d));

	d->t = t;
	lull_blocks_init(&d->blocks, t->reader);
	return d;
}

static void drop(struct lull_detail *d, size_t ix)
{
	struct cached *c = &d->cache[ix];

	d->cached_bytes -= c->n * sizeof(*c->events);
	free(c->events);
	free(c->runs);
	*c = d->cache[--d->n_cached];
}

void lull_detail_free(struct lull_detail *d)
{
	if (!d)
		return;
	while (d->n_cached)
		drop(d, d->n_cached - 1);
	lull_blocks_release(&d->blocks);
	free(d);
}

/* ---- blocks ---- */

/* The lane of an event; what overlaps may lie deeper here than when the lanes were made. */
static u32 lane_of(const struct lull_detail *d, u32 source, const struct lull_tl_event *e)
{
	u32 lane = LULL_NO_ROW;

	for (i32 line = e->line; line >= 0 && lane == LULL_NO_ROW; line--)
		lane = lull_timeline_find(d->t, source, e->group, (u32)line);
	return lane;
}

/* Sort the events of one group, which are by start, by line; add a run for each line. */
static void split_lines(struct lull_detail *d, struct cached *c, const struct lull_tl_event *from,
			size_t n)
{
	size_t counts[LULL_N_LINES] = { 0 }, place[LULL_N_LINES], first = c->n;
	struct run *runs[LULL_N_LINES] = { NULL };

	for (size_t i = 0; i < n; i++)
		counts[from[i].line]++;
	c->runs = lull_realloc(c->runs, c->n_runs + LULL_N_LINES, sizeof(*c->runs));
	for (unsigned line = 0; line < LULL_N_LINES; line++) {
		struct lull_tl_event sample = { .group = from[0].group, .line = (u8)line };

		place[line] = first;
		if (!counts[line])
			continue;
		runs[line] = &c->runs[c->n_runs++];
		*runs[line] = (struct run){ .lane = lane_of(d, c->source, &sample),
					    .first = (u32)first,
					    .n = (u32)counts[line] };
		first += counts[line];
	}
	for (size_t i = 0; i < n; i++) {
		struct run *run = runs[from[i].line];

		c->events[place[from[i].line]++] = from[i];
		if (from[i].end_ns > run->max_end_ns)
			run->max_end_ns = from[i].end_ns;
	}
	c->n += n;
}

/* Most groups have one line, and nothing to be sorted. */
static void split_group(struct lull_detail *d, struct cached *c, const struct lull_tl_event *from,
			size_t n)
{
	struct run *run;
	u64 max_end_ns = 0;
	size_t same = 0;

	for (; same < n && from[same].line == from[0].line; same++)
		max_end_ns = from[same].end_ns > max_end_ns ? from[same].end_ns : max_end_ns;
	if (same < n) {
		split_lines(d, c, from, n);
		return;
	}
	memcpy(c->events + c->n, from, n * sizeof(*from));
	c->runs = lull_realloc(c->runs, c->n_runs + LULL_N_LINES, sizeof(*c->runs));
	run = &c->runs[c->n_runs++];
	*run = (struct run){ .lane = lane_of(d, c->source, from),
			     .first = (u32)c->n,
			     .n = (u32)n,
			     .max_end_ns = max_end_ns };
	c->n += n;
}

static void load(struct lull_detail *d, struct cached *c)
{
	const struct lull_source *source = &lull_sources[c->source];
	size_t n = lull_blocks_decode(&d->blocks, source, c->block_ix), end;
	struct lull_tl_event *events = d->blocks.events.at;
	struct lull_lines_state lines;

	c->events = lull_realloc(NULL, n + 1, sizeof(*c->events)); /* not zeroed: all is set */
	for (size_t i = 0; i < n; i = end) {
		memset(&lines, 0, sizeof(lines));
		for (end = i; end < n && events[end].group == events[i].group; end++)
			lull_lines_fit(&lines, source, &events[end]);
		split_group(d, c, events + i, end - i);
	}
}

static void make_room(struct lull_detail *d)
{
	while (d->n_cached && (d->n_cached == MAX_CACHED || d->cached_bytes > CACHE_BYTES)) {
		size_t oldest = 0;

		for (size_t i = 1; i < d->n_cached; i++)
			oldest = d->cache[i].used < d->cache[oldest].used ? i : oldest;
		drop(d, oldest);
	}
}

static const struct cached *block_of(struct lull_detail *d, u32 source, size_t block_ix)
{
	struct cached *c;

	for (size_t i = 0; i < d->n_cached; i++) {
		c = &d->cache[i];
		if (c->block_ix == block_ix && c->source == source) {
			c->used = ++d->clock;
			return c;
		}
	}
	make_room(d);
	c = &d->cache[d->n_cached++];
	*c = (struct cached){ .block_ix = block_ix, .source = source, .used = ++d->clock };
	load(d, c);
	d->cached_bytes += c->n * sizeof(*c->events);
	return c;
}

/* ---- events ---- */

/* The first event of a run that may end behind `at_ns`; runs of one line hardly overlap. */
static size_t first_event(const struct lull_tl_event *events, const struct run *run, u64 at_ns)
{
	size_t low = run->first, high = run->first + run->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (events[mid].end_ns >= at_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Told each event with its block. */
typedef void event_fn(void *ctx, const struct lull_tl_event *event, size_t block_ix);

static void each_in_block(const struct cached *c, u32 lane, struct lull_span span, event_fn *fn,
			  void *ctx)
{
	for (size_t r = 0; r < c->n_runs; r++) {
		const struct run *run = &c->runs[r];

		if (run->lane != lane || run->max_end_ns < span.from_ns)
			continue;
		for (size_t i = first_event(c->events, run, span.from_ns);
		     i < run->first + run->n && c->events[i].start_ns < span.to_ns; i++)
			fn(ctx, &c->events[i], c->block_ix);
	}
}

/* Visit the events of a lane of a table that touch `span`. */
static void each_event(struct lull_timeline *t, u32 lane, struct lull_span span, event_fn *fn,
		       void *ctx)
{
	u32 source = lull_timeline_lane(t, lane)->source;
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(t->reader, &n);

	for (size_t i = 0; i < n; i++) {
		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS)
			continue;
		if (e[i].min_start >= span.to_ns)
			break;
		if (e[i].max_end >= span.from_ns)
			each_in_block(block_of(t->detail, source, i), lane, span, fn, ctx);
	}
}

/* ---- idle time ---- */

struct idle_ctx {
	struct lull_vec spans; /* struct lull_span: the pieces of the wanted kind */
	bool wants_busy;
	struct lull_idle_sweep sweep;
};

static void on_piece(void *ctx, struct lull_span span, bool is_busy)
{
	struct idle_ctx *c = ctx;

	if (is_busy == c->wants_busy)
		lull_vec_add(&c->spans, &span, 1);
}

static void add_work(void *ctx, const struct lull_tl_event *event, size_t block_ix)
{
	struct idle_ctx *c = ctx;

	(void)block_ix;
	lull_idle_add(&c->sweep, event->start_ns, event->end_ns);
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
	const u32 *device_of = t->detail->blocks.device_of;

	if (lane->source == LULL_NO_ROW ||
	    !(lull_sources[lane->source].flags & LULL_SOURCE_IS_WORK))
		return false;
	if (lane->group & LULL_GROUP_DEVICE)
		return lane->group == group;
	return (device_of[lane->group] | LULL_GROUP_DEVICE) == group;
}

/* The busy or idle pieces of a device inside `span`; those at its edges are cut there. */
static void device_pieces(struct lull_timeline *t, u32 group, struct lull_span span,
			  struct idle_ctx *c)
{
	struct lull_span life = life_of(t, group);

	span = lull_span_cut(span, life.from_ns, life.to_ns);
	if (span.to_ns <= span.from_ns)
		return;
	lull_idle_init(&c->sweep, on_piece, c);
	/* Work of no length would be left out; one nanosecond outside marks the edges. */
	for (u32 i = 0; i < t->lanes.n; i++) {
		if (is_work_of(t, lull_timeline_lane(t, i), group))
			each_event(t, i, span, add_work, c);
	}
	if (!c->wants_busy) {
		lull_idle_add(&c->sweep, span.from_ns ? span.from_ns - 1 : 0, span.from_ns);
		lull_idle_add(&c->sweep, span.to_ns, span.to_ns + 1);
	}
	lull_idle_advance(&c->sweep, UINT64_MAX);
	lull_idle_release(&c->sweep);
}

/* The same as pieces (struct lull_idle), idle ones with their causes. */
static void named_pieces(struct lull_timeline *t, const struct lull_tl_lane *lane,
			 struct lull_span span, struct lull_vec *out)
{
	struct idle_ctx c = { .wants_busy = lane->line == 0 };
	const struct lull_span *spans;

	lull_vec_init(&c.spans, sizeof(struct lull_span));
	device_pieces(t, lane->group, span, &c);
	spans = c.spans.at;
	if (!c.wants_busy)
		lull_idle_with_causes(t, lane->group, span, &c.spans, out);
	for (size_t i = 0; i < c.spans.n && c.wants_busy; i++)
		*(struct lull_idle *)lull_vec_push(out) =
			(struct lull_idle){ spans[i], LULL_NAME_FIXED | LULL_FIXED_BUSY, 0 };
	lull_vec_release(&c.spans);
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

	if (level) {
		for (size_t i = lull_level_first(level, span.from_ns ? span.from_ns - 1 : 0);
		     i < level->n && level->recs[i].start_ns < span.to_ns; i++)
			lull_fold_add(fold, &level->recs[i]);
	} else if (l->source == LULL_NO_ROW) {
		fold_device(t, lane, span, fold);
	} else {
		each_event(t, lane, span, fold_event, fold);
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
		each_event(t, lane, span, list_event, &c);
	else if (lull_timeline_lane(t, lane)->line > LULL_LINE_IDLE)
		list_kept(t, lane, span, &c);
	else
		list_pieces(t, lane, span, &c);
	at = out->at;
	if (out->n > c.first)
		qsort(at + c.first, out->n - c.first, sizeof(*at), by_start);
}
