#include "page/path.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "model/link.h"
#include "page/links.h"
#include "page/waits.h"
#include "timeline/name.h"

#define LOOK_BACK_NS 200000000ull /* launches this long before the span may be of its work */
#define MIN_WAIT_NS  20000u	  /* as page/waits.h */
#define MAX_PIECES   20000u
#define MAX_HOPS     8 /* between threads at one moment */
#define MIN_CALLS    4 /* of a thread that works for another one */

/* A unit of work or a call. */
struct unit {
	struct lull_found found;
	u64 key;
};

/* When a call was, and in which thread: for the search of one that works for others. */
struct moment {
	struct lull_span span;
	u32 thread;
};

struct wait {
	struct lull_found found;
	u32 thread;
};

struct path {
	struct lull_timeline *t;
	struct lull_span span;
	struct lull_vec works;	/* struct unit, by end */
	struct lull_vec calls;	/* struct unit */
	struct lull_map by_key; /* key to call + 1 */
	struct lull_vec starts; /* struct moment of all calls, by start */
	struct lull_vec waits;	/* struct wait, by thread and then by end */
	struct lull_vec *pieces;
	u64 at_ns;  /* all after it is explained */
	u32 thread; /* row, if it is in no work */
	struct unit *work;
};

/* ---- what happened ---- */

static int unit_by_end(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return (x->found.event.end_ns > y->found.event.end_ns) -
	       (x->found.event.end_ns < y->found.event.end_ns);
}

static int moment_by_start(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

static int wait_by_thread(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;
	u64 x_ns = x->found.event.end_ns, y_ns = y->found.event.end_ns;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x_ns > y_ns) - (x_ns < y_ns);
}

static u32 thread_of(const struct path *p, u32 lane)
{
	return lull_timeline_row(p->t, lull_timeline_lane(p->t, lane)->row)->parent;
}

/* Add the events of a lane with their keys; blocks are decoded once. */
static void add_units(struct path *p, u32 lane, struct lull_span span, struct lull_vec *to)
{
	const struct lull_lane_source *source =
		&lull_sources[lull_timeline_lane(p->t, lane)->source];
	const void *cols[LULL_MAX_COLS];
	struct lull_link_columns link;
	struct lull_vec events;
	struct lull_cursor c;
	size_t block_ix = SIZE_MAX, n = 0;
	bool has_keys;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(p->t, lane, span, SIZE_MAX, &events);
	lull_cursor_init(&c, p->t->reader, source->table, 0, UINT64_MAX);
	has_keys = lull_link_columns_init(&link, &c);
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_found *f = lull_vec_get(&events, i);
		struct unit unit = { .found = *f };

		if (has_keys && f->block_ix != block_ix)
			n = lull_cursor_read(&c, f->block_ix, cols);
		block_ix = f->block_ix;
		if (has_keys && f->event.row < n) {
			const struct lull_link_rows rows = lull_link_rows_of(&link, cols);

			unit.key = lull_link_rows_key(&rows, f->event.row);
		}
		lull_vec_add(to, &unit, 1);
	}
	lull_cursor_release(&c);
	lull_vec_release(&events);
}

static void add_waits(struct path *p, u32 lane, bool is_call)
{
	u32 thread = thread_of(p, lane);
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(p->t, lane, p->span, SIZE_MAX, &events);
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_found *f = lull_vec_get(&events, i);
		bool waits = !is_call || f->event.class == LULL_CALLS_WAIT ||
			     f->event.class == LULL_CALLS_MEMORY;

		if (waits && f->event.end_ns - f->event.start_ns >= MIN_WAIT_NS)
			*(struct wait *)lull_vec_push(&p->waits) = (struct wait){ *f, thread };
	}
	lull_vec_release(&events);
}

static void index_calls(struct path *p)
{
	for (u32 i = 0; i < p->calls.n; i++) {
		const struct unit *call = lull_vec_get(&p->calls, i);
		const struct lull_tl_event *e = &call->found.event;
		bool is_new;
		u32 *at = call->key ? lull_map_add(&p->by_key, call->key, &is_new) : NULL;

		if (at && is_new)
			*at = i + 1;
		*(struct moment *)lull_vec_push(&p->starts) = (struct moment){
			{ e->start_ns, e->end_ns },
			thread_of(p, call->found.lane),
		};
	}
}

static void collect(struct path *p)
{
	struct lull_span early = { p->span.from_ns > LOOK_BACK_NS ? p->span.from_ns - LOOK_BACK_NS
								  : 0,
				   p->span.to_ns };

	for (u32 lane = 0; lane < p->t->lanes.n; lane++) {
		u32 source = lull_timeline_lane(p->t, lane)->source;
		const char *kind;

		if (source == LULL_NO_ROW)
			continue;
		kind = lull_sources[source].kind;
		if (lull_sources[source].flags & LULL_SOURCE_IS_WORK)
			add_units(p, lane, p->span, &p->works);
		if (!strcmp(kind, "call"))
			add_units(p, lane, early, &p->calls);
		if (!strcmp(kind, "call") || !strcmp(kind, "os") || !strcmp(kind, "gil"))
			add_waits(p, lane, !strcmp(kind, "call"));
	}
	index_calls(p);
	if (p->works.n)
		lull_sort(p->works.at, p->works.n, sizeof(struct unit), unit_by_end);
	if (p->starts.n)
		lull_sort(p->starts.at, p->starts.n, sizeof(struct moment), moment_by_start);
	if (p->waits.n)
		lull_sort(p->waits.at, p->waits.n, sizeof(struct wait), wait_by_thread);
}

/* ---- pieces ---- */

/* The lane of a thread to draw on: that of its CPU time, or its first. */
static u32 lane_of_thread(const struct path *p, u32 thread)
{
	const struct lull_row *rows = p->t->rows.at;
	u32 first = LULL_NO_ROW;

	for (size_t i = 0; i < p->t->rows.n; i++) {
		if (rows[i].parent != thread || !rows[i].n_lanes)
			continue;
		if (!strcmp(rows[i].kind, "cpu"))
			return rows[i].first_lane;
		first = first == LULL_NO_ROW ? rows[i].first_lane : first;
	}
	return first;
}

/* Explain the time back to `from_ns`. */
static void put(struct path *p, u64 from_ns, enum lull_path_kind kind, u32 lane, u32 name)
{
	struct lull_path_piece *piece;

	if (from_ns < p->span.from_ns)
		from_ns = p->span.from_ns;
	if (from_ns >= p->at_ns)
		return;
	piece = lull_vec_push(p->pieces);
	*piece = (struct lull_path_piece){ { from_ns, p->at_ns }, kind, lane, name };
	p->at_ns = from_ns;
}

/* The work of a lane that ended last before a moment; of any lane if it is LULL_NO_ROW. */
static struct unit *last_work(const struct path *p, u32 lane, u64 until_ns)
{
	struct unit *works = p->works.at;
	size_t low = 0, high = p->works.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (works[mid].found.event.end_ns <= until_ns)
			low = mid + 1;
		else
			high = mid;
	}
	while (low > 0 && lane != LULL_NO_ROW && works[low - 1].found.lane != lane)
		low--;
	return low ? &works[low - 1] : NULL;
}

/* ---- steps back ---- */

static void from_work(struct path *p)
{
	const struct lull_tl_event *e = &p->work->found.event;
	u32 lane = p->work->found.lane;
	u32 *ix = p->work->key ? lull_map_find(&p->by_key, p->work->key) : NULL;
	const struct unit *call = ix ? lull_vec_get(&p->calls, *ix - 1) : NULL;
	struct unit *before = last_work(p, lane, e->start_ns);

	put(p, e->start_ns, LULL_PATH_WORK, lane, e->name);
	if (before && (!call || before->found.event.end_ns >= call->found.event.start_ns)) {
		put(p, before->found.event.end_ns, LULL_PATH_QUEUE, lane, e->name);
		p->work = before;
		return;
	}
	p->work = NULL;
	if (!call) { /* launched long ago */
		put(p, p->span.from_ns, LULL_PATH_QUEUE, lane, e->name);
		return;
	}
	put(p, call->found.event.start_ns, LULL_PATH_QUEUE, lane, e->name);
	p->thread = thread_of(p, call->found.lane);
}

/* The wait of a thread that ended last. */
static const struct lull_found *last_wait(const struct path *p)
{
	const struct wait *waits = p->waits.at;
	size_t low = 0, high = p->waits.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct wait *w = &waits[mid];

		if (w->thread < p->thread ||
		    (w->thread == p->thread && w->found.event.end_ns <= p->at_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low && waits[low - 1].thread == p->thread ? &waits[low - 1].found : NULL;
}

/* The first call that started at a moment or later. */
static size_t first_start(const struct path *p, u64 from_ns)
{
	const struct moment *starts = p->starts.at;
	size_t low = 0, high = p->starts.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (starts[mid].span.from_ns < from_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The thread that made most CUDA calls during a wait, up to its last fifth; LULL_NO_ROW if none
 * did. A thread that hands its work to another one waits so, and samples do not always show it.
 */
static u32 busy_thread(const struct path *p, const struct lull_found *wait)
{
	u64 late_ns = wait->event.end_ns - (wait->event.end_ns - wait->event.start_ns) / 5;
	u32 best = LULL_NO_ROW, most = 0;
	const struct moment *call = p->starts.at;
	struct lull_map counts;

	lull_map_init(&counts);
	for (size_t i = first_start(p, wait->event.start_ns);
	     i < p->starts.n && call[i].span.from_ns <= wait->event.end_ns; i++) {
		u32 *n;

		if (call[i].thread == p->thread || call[i].span.to_ns > wait->event.end_ns)
			continue;
		n = lull_map_add(&counts, call[i].thread, NULL);
		if (++*n > most && call[i].span.to_ns >= late_ns) {
			most = *n;
			best = call[i].thread;
		}
	}
	lull_map_release(&counts);
	return most >= MIN_CALLS ? best : LULL_NO_ROW;
}

/* Go on where the wait was for: work or a thread; false if that is not known. */
static bool follow(struct path *p, const struct lull_found *wait, int *n_hops)
{
	struct lull_vec links;
	bool is_known = false;

	lull_vec_init(&links, sizeof(struct lull_page_link));
	lull_waits_find(p->t, wait, &links);
	for (size_t i = 0; i < links.n && !is_known; i++) {
		const struct lull_page_link *link = lull_vec_get(&links, i);
		u64 end_ns = link->found.event.end_ns;

		if (link->relation == LULL_IS_AWAITED) {
			struct unit *work = last_work(p, link->found.lane, end_ns);

			is_known = work && work->found.event.end_ns > wait->event.start_ns;
			if (is_known)
				put(p, end_ns, LULL_PATH_RETURN, wait->lane, wait->event.name);
			p->work = is_known ? work : NULL;
		} else if (link->relation == LULL_IS_PRODUCER && *n_hops < MAX_HOPS) {
			p->thread = thread_of(p, link->found.lane);
			is_known = true;
			(*n_hops)++;
		}
	}
	lull_vec_release(&links);
	if (!is_known && *n_hops < MAX_HOPS) {
		u32 thread = busy_thread(p, wait);

		is_known = thread != LULL_NO_ROW;
		p->thread = is_known ? thread : p->thread;
		*n_hops += is_known;
	}
	return is_known;
}

static void from_thread(struct path *p, int *n_hops)
{
	const struct lull_found *wait = last_wait(p);
	u32 lane = lane_of_thread(p, p->thread);
	u64 until_ns = wait ? wait->event.end_ns : p->span.from_ns, before_ns = p->at_ns;

	put(p, until_ns, LULL_PATH_THREAD, lane, 0);
	*n_hops = p->at_ns < before_ns ? 0 : *n_hops;
	if (wait && !follow(p, wait, n_hops))
		put(p, wait->event.start_ns, LULL_PATH_WAIT, wait->lane, wait->event.name);
}

static void reverse(struct lull_vec *pieces, size_t first)
{
	struct lull_path_piece *at = pieces->at;

	for (size_t i = first, k = pieces->n; i + 1 < k; i++) {
		struct lull_path_piece piece = at[i];

		at[i] = at[--k];
		at[k] = piece;
	}
}

void lull_path_find(struct lull_timeline *t, struct lull_span span, u32 thread,
		    struct lull_vec *pieces)
{
	struct path p = { .t = t, .span = span, .pieces = pieces, .at_ns = span.to_ns };
	size_t first = pieces->n;
	struct unit *last;
	int n_hops = 0;

	lull_vec_init(&p.works, sizeof(struct unit));
	lull_vec_init(&p.calls, sizeof(struct unit));
	lull_vec_init(&p.starts, sizeof(struct moment));
	lull_vec_init(&p.waits, sizeof(struct wait));
	lull_map_init(&p.by_key);
	collect(&p);
	p.thread = thread;
	/* A device that is still busy at the end is what the step goes by. */
	last = last_work(&p, LULL_NO_ROW, UINT64_MAX);
	p.work = last && last->found.event.end_ns >= span.to_ns ? last : NULL;
	while (p.at_ns > span.from_ns && pieces->n - first < MAX_PIECES) {
		if (p.work)
			from_work(&p);
		else
			from_thread(&p, &n_hops);
	}
	reverse(pieces, first);
	lull_vec_release(&p.works);
	lull_vec_release(&p.calls);
	lull_vec_release(&p.starts);
	lull_vec_release(&p.waits);
	lull_map_release(&p.by_key);
}
