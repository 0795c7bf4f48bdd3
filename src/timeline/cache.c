#include "timeline/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/file_frame.h"

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

/* What was looked at last, where it is finer than the levels or nearly so. */
struct wish {
	struct lull_span span;
	u64 sources; /* a bit for each of lull_sources */
};

struct lull_cache {
	struct lull_timeline *t;
	struct wish wish;
	struct lull_blocks blocks;
	struct cached cache[MAX_CACHED];
	size_t n_cached;
	struct lull_tl_event *spare; /* of a block that was dropped: its pages are there already */
	size_t spare_cap;
	u64 cached_bytes;
	u64 clock;
};

struct lull_cache *lull_cache_new(struct lull_timeline *t)
{
	struct lull_cache *d = lull_alloc(1, sizeof(*d));

	d->t = t;
	lull_blocks_init(&d->blocks, t->reader);
	return d;
}

static void drop(struct lull_cache *d, size_t ix)
{
	struct cached *c = &d->cache[ix];

	d->cached_bytes -= c->cap * sizeof(*c->events);
	free(d->spare);
	d->spare = c->events;
	d->spare_cap = c->cap;
	free(c->runs);
	*c = d->cache[--d->n_cached];
}

void lull_cache_free(struct lull_cache *d)
{
	if (!d)
		return;
	while (d->n_cached)
		drop(d, d->n_cached - 1);
	lull_blocks_release(&d->blocks);
	free(d->spare);
	free(d);
}

u32 lull_cache_device(const struct lull_cache *d, u32 group)
{
	if (group & LULL_GROUP_DEVICE)
		return group;
	return d->blocks.device_of[group] | LULL_GROUP_DEVICE;
}

/* ---- blocks ---- */

/* The lane of an event; what overlaps may lie deeper here than when the lanes were made. */
static u32 lane_of(const struct lull_cache *d, u32 source, const struct lull_tl_event *e)
{
	u32 lane = LULL_NO_ROW;

	for (i32 line = e->line; line >= 0 && lane == LULL_NO_ROW; line--)
		lane = lull_timeline_find(d->t, source, e->group, (u32)line);
	return lane;
}

/* Sort the events of one group, which are by start, by line; add a run for each line. */
static void split_lines(struct lull_cache *d, struct cached *c, const struct lull_tl_event *from,
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
static void split_group(struct lull_cache *d, struct cached *c, const struct lull_tl_event *from,
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
static void take_room(struct lull_cache *d, struct cached *c, size_t n)
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

static void load(struct lull_cache *d, struct cached *c)
{
	const struct lull_lane_source *source = &lull_sources[c->source];
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

static void make_room(struct lull_cache *d)
{
	while (d->n_cached && (d->n_cached == MAX_CACHED || d->cached_bytes > CACHE_BYTES)) {
		size_t oldest = 0;

		for (size_t i = 1; i < d->n_cached; i++)
			oldest = d->cache[i].used < d->cache[oldest].used ? i : oldest;
		drop(d, oldest);
	}
}

static const struct cached *block_of(struct lull_cache *d, u32 source, size_t block_ix)
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

/* The first event of a run that may end after `at_ns`; runs of one line hardly overlap. */
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

static void each_in_block(const struct cached *c, u32 lane, struct lull_span span,
			  lull_cache_visit *fn, void *ctx)
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

void lull_cache_each(struct lull_cache *d, u32 lane, struct lull_span span, lull_cache_visit *fn,
		     void *ctx)
{
	u32 source = lull_timeline_lane(d->t, lane)->source;
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(d->t->reader, &n);

	for (size_t i = 0; i < n; i++) {
		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS)
			continue;
		if (e[i].min_start >= span.to_ns)
			break;
		if (e[i].max_end >= span.from_ns)
			each_in_block(block_of(d, source, i), lane, span, fn, ctx);
	}
}

void lull_cache_wish(struct lull_cache *d, const struct lull_tl_lane *lane, struct lull_span span,
		     u32 log2)
{
	struct wish *wish = &d->wish;

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

static bool is_cached(const struct lull_cache *d, u32 source, size_t block_ix)
{
	for (size_t i = 0; i < d->n_cached; i++)
		if (d->cache[i].block_ix == block_ix && d->cache[i].source == source)
			return true;
	return false;
}

/* The block of a source that is missing nearest to the middle of the wish. */
static size_t nearest_missing(const struct lull_cache *d, u32 source, u64 *best, size_t *n_there)
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

bool lull_cache_ahead(struct lull_cache *d)
{
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
