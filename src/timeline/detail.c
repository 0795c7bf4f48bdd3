#include "timeline/detail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "timeline/idle.h"
#include "timeline/idle_cause.h"
#include "timeline/name.h"
#include "trace/file.h"

#define CACHE_BYTES (48u << 20)
#define MAX_CACHED  256u
#define MAX_AHEAD   20u /* blocks around a view: 40 MB of the cache */

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
	size_t n, cap;
	struct run *runs;
	size_t n_runs;
};

/*
 * The pieces of a device in a window: those that ask for its busy time ask for the idle one next.
 */
struct swept {
	u32 group;
	struct lull_span span;
	struct lull_vec busy, idle; /* struct lull_span */
};

/* What was looked at last, where it is finer than the levels or nearly so. */
struct wish {
	struct lull_span span;
	u64 sources; /* a bit for each of lull_sources */
};

struct lull_detail {
	struct lull_timeline *t;
	struct wish wish;
	struct swept swept;
	struct lull_blocks blocks;
	struct cached cache[MAX_CACHED];
	size_t n_cached;
	struct lull_tl_event *spare; /* of a block that was dropped: its pages are there already */
	size_t spare_cap;
	u64 cached_bytes;
	u64 clock;
};

struct lull_detail *lull_detail_new(struct lull_timeline *t)
{
	struct lull_detail *d = lull_alloc(1, sizeof(*d));

	d->t = t;
	lull_blocks_init(&d->blocks, t->reader);
	lull_vec_init(&d->swept.busy, sizeof(struct lull_span));
	lull_vec_init(&d->swept.idle, sizeof(struct lull_span));
	return d;
}

static void drop(struct lull_detail *d, size_t ix)
{
	struct cached *c = &d->cache[ix];

	d->cached_bytes -= c->cap * sizeof(*c->events);
	free(d->spare);
	d->spare = c->events;
	d->spare_cap = c->cap;
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
	free(d->spare);
	lull_vec_release(&d->swept.busy);
	lull_vec_release(&d->swept.idle);
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

/* Not zeroed: all is set. */
static void take_room(struct lull_detail *d, struct cached *c, size_t n)
{
	if (d->spare_cap < n) {
		c->events = lull_realloc(NULL, n, sizeof(*c->events));
		c->cap = n;
		return;
	}
	c->events = d->spare;
	c->cap = d->spare_cap;
	d->spare = NULL;
	d->spare_cap = 0;
}

static void load(struct lull_detail *d, struct cached *c)
{
	const struct lull_source *source = &lull_sources[c->source];
	size_t n = lull_blocks_decode(&d->blocks, source, c->block_ix), end;
	struct lull_tl_event *events = d->blocks.events.at;
	struct lull_lines_state lines;

	take_room(d, c, n + 1);
	for (size_t i = 0; i < n; i = end) {
		/* What does not overlap needs no more than one line. */
		u64 last_ns = 0;

		for (end = i; end < n && events[end].group == events[i].group &&
			      source->lines == LULL_LINES_FIT && events[end].start_ns >= last_ns;
		     end++)
			last_ns = events[end].end_ns;
		memset(&lines, 0, sizeof(lines));
		lines.end_ns[0] = last_ns;
		for (; end < n && events[end].group == events[i].group; end++)
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
	d->cached_bytes += c->cap * sizeof(*c->events);
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

u32 lull_detail_device(const struct lull_timeline *t, u32 group)
{
	if (group & LULL_GROUP_DEVICE)
		return group;
	return t->detail->blocks.device_of[group] | LULL_GROUP_DEVICE;
}

static bool is_work_of(const struct lull_timeline *t, const struct lull_tl_lane *lane, u32 group)
{
	if (lane->source == LULL_NO_ROW ||
	    !(lull_sources[lane->source].flags & LULL_SOURCE_IS_WORK))
		return false;
	return lull_detail_device(t, lane->group) == group;
}

/* Before the first and behind the last work in the window the device is idle, too. */
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
			each_event(t, i, span, add_work, &s);
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

/* Views that are next to this one need these blocks if the levels end here, or one finer. */
static void make_wish(struct lull_timeline *t, const struct lull_tl_lane *lane,
		      struct lull_span span, u32 log2)
{
	struct wish *wish = &t->detail->wish;

	if (!lane->lod.n_levels || log2 > lane->lod.levels[0].log2 || !lane->lod.levels[0].log2)
		return;
	if (wish->span.from_ns != span.from_ns || wish->span.to_ns != span.to_ns)
		*wish = (struct wish){ .span = span };
	for (u32 s = 0; lull_sources[s].kind; s++)
		if (lane->source == s ||
		    (lane->source == LULL_NO_ROW && lull_sources[s].flags & LULL_SOURCE_IS_WORK))
			wish->sources |= 1ull << s;
}

static u64 distance(const struct lull_entry *e, u64 at_ns)
{
	if (e->max_end < at_ns)
		return at_ns - e->max_end;
	return e->min_start > at_ns ? e->min_start - at_ns : 0;
}

static bool is_cached(const struct lull_detail *d, u32 source, size_t block_ix)
{
	for (size_t i = 0; i < d->n_cached; i++)
		if (d->cache[i].block_ix == block_ix && d->cache[i].source == source)
			return true;
	return false;
}

/* The block of a source that is missing nearest to the middle of the wish. */
static size_t nearest_missing(const struct lull_detail *d, u32 source, u64 *best, size_t *n_there)
{
	struct lull_span span = d->wish.span;
	u64 middle = span.from_ns + (span.to_ns - span.from_ns) / 2;
	u64 reach = span.to_ns - span.from_ns;
	size_t n, found = SIZE_MAX;
	const struct lull_entry *e = lull_reader_blocks(d->t->reader, &n);

	for (size_t i = 0; i < n; i++) {
		u64 far;

		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS)
			continue;
		far = distance(&e[i], middle);
		if (far > reach)
			continue;
		if (is_cached(d, source, i)) {
			++*n_there;
		} else if (far < *best) {
			*best = far;
			found = i;
		}
	}
	return found;
}

bool lull_detail_ahead(struct lull_timeline *t)
{
	struct lull_detail *d = t->detail;
	size_t found = SIZE_MAX, n_there = 0;
	u64 best = UINT64_MAX;
	u32 source = 0;

	for (u32 s = 0; lull_sources[s].kind; s++) {
		size_t block_ix = d->wish.sources >> s & 1 ? nearest_missing(d, s, &best, &n_there)
							   : SIZE_MAX;

		if (block_ix == SIZE_MAX)
			continue;
		found = block_ix;
		source = s;
	}
	if (found == SIZE_MAX || n_there >= MAX_AHEAD) {
		d->wish.sources = 0;
		return false;
	}
	block_of(d, source, found);
	return true;
}

void lull_detail_fold(struct lull_timeline *t, u32 lane, struct lull_span span,
		      struct lull_fold *fold)
{
	const struct lull_tl_lane *l = lull_timeline_lane(t, lane);
	const struct lull_level *level = lull_lod_level(&l->lod, fold->log2);

	make_wish(t, l, span, fold->log2);
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
