#include "page/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/device.h"
#include "model/link.h"
#include "model/wait.h"
#include "page/fields.h"
#include "timeline/name.h"

#define SLACK_NS    2000u  /* clocks of device and host agree that well */
#define MIN_WAIT_NS 20000u /* shorter waits have no story */
#define MIN_NEAR_NS \
	200000u /* a range that ended this close to the end of a wait had to do with it */
#define MAX_LISTED   4096u
#define MAX_REACH_NS 200000000000ull /* what comes later has nothing to do with it */

/* Which streams a call waited for. */
struct sync {
	u32 process;
	u32 lane; /* 0: all of the process */
};

/* ---- threads and processes ---- */

static u32 process_of(const struct lull_timeline *t, u32 group)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(t->reader, LULL_TABLE_lane, &n_lanes);

	if (group & LULL_GROUP_DEVICE)
		return lull_device_process(t->reader, group & ~LULL_GROUP_DEVICE);
	return group && group <= n_lanes ? lanes[group - 1].process : 0;
}

/* The same process, or one that it started: workers hand over what they make. */
static bool is_related(const struct lull_timeline *t, u32 process, u32 other)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(t->reader, LULL_TABLE_process, &n);

	if (!process || !other || process > n || other > n)
		return false;
	return process == other || all[other - 1].parent_pid == all[process - 1].pid;
}

/* ---- the last that ended ---- */

struct last {
	struct lull_found found;
	bool is_found;
};

/* Take the event of a lane that ends last in (after, until], the shortest of those that do. */
static void take_last(struct lull_timeline *t, u32 lane, struct lull_span window, u64 after_ns,
		      struct last *last)
{
	const struct lull_found *f;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(*f));
	lull_detail_events(t, lane, window, MAX_LISTED, &events);
	f = events.at;
	for (size_t i = 0; i < events.n; i++) {
		const struct lull_tl_event *e = &f[i].event, *best = &last->found.event;

		/* What began with the slack did not hold anybody up. */
		if (e->end_ns <= after_ns || e->end_ns > window.to_ns ||
		    e->start_ns + SLACK_NS >= window.to_ns)
			continue;
		if (last->is_found && (e->end_ns < best->end_ns || (e->end_ns == best->end_ns &&
								    e->start_ns <= best->start_ns)))
			continue;
		*last = (struct last){ f[i], true };
	}
	lull_vec_release(&events);
}

/* Which lanes are looked at. */
typedef bool lane_fn(const struct lull_timeline *t, const struct lull_tl_lane *lane,
		     const void *ctx);

/*
 * What ends last before `to_ns` and after `from_ns` on the lanes of a kind: near the end first,
 * as long waits have much in them.
 */
static struct last last_ended(struct lull_timeline *t, struct lull_span span, lane_fn *fn,
			      const void *ctx)
{
	struct last last = { .is_found = false };
	u64 reach_ns = 100000;

	for (bool is_whole = false; !last.is_found && !is_whole; reach_ns *= 16) {
		struct lull_span window = span;

		is_whole = reach_ns >= span.to_ns - span.from_ns;
		if (!is_whole)
			window.from_ns = span.to_ns - reach_ns;
		for (u32 i = 0; i < t->lanes.n; i++)
			if (fn(t, lull_timeline_lane(t, i), ctx))
				take_last(t, i, window, span.from_ns, &last);
	}
	return last;
}

/* ---- what calls of CUDA wait for ---- */

#define OF_STREAM 3 /* cuda_sync.kind */

/* The stream of a wait, if its record is there. */
static u32 stream_of(struct lull_timeline *t, u64 key, struct lull_span span)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(t->reader, LULL_TABLE_lane, &n_lanes);
	struct lull_cuda_sync_cols cols;
	struct lull_cursor c;
	u32 lane = 0;

	lull_cursor_init(&c, t->reader, LULL_TABLE_cuda_sync, span.from_ns, span.to_ns);
	while (key && !lane && (n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 process = lull_work_process(lanes, cols.process[i], cols.lane[i]);

			if (cols.kind[i] == OF_STREAM &&
			    lull_link_key(process, cols.correlation[i]) == key)
				lane = cols.lane[i];
		}
	}
	lull_cursor_release(&c);
	return lane;
}

static bool is_awaited_lane(const struct lull_timeline *t, const struct lull_tl_lane *lane,
			    const void *ctx)
{
	const struct sync *sync = ctx;

	if (lane->source == LULL_NO_ROW ||
	    !(lull_sources[lane->source].flags & LULL_SOURCE_IS_WORK) ||
	    process_of(t, lane->group) != sync->process)
		return false;
	return !sync->lane || lane->group & LULL_GROUP_DEVICE || lane->group == sync->lane;
}

static struct last awaited_by(struct lull_timeline *t, const struct lull_found *call)
{
	struct lull_span span = { call->event.start_ns, call->event.end_ns + SLACK_NS };
	u64 key = lull_fields_key(t->reader, LULL_TABLE_cuda_call, call->block_ix, call->event.row);
	struct sync sync = { .process = process_of(t, lull_timeline_lane(t, call->lane)->group),
			     .lane = stream_of(t, key, span) };

	return last_ended(t, span, is_awaited_lane, &sync);
}

static bool is_same(const struct lull_found *a, const struct lull_found *b)
{
	return a->lane == b->lane && a->block_ix == b->block_ix && a->event.row == b->event.row;
}

static void add_link(struct lull_vec *links, const struct lull_found *found,
		     enum lull_relation relation)
{
	struct lull_page_link link = { *found, relation };

	lull_vec_add(links, &link, 1);
}

/* The calls that went on when this work ended. */
static void find_waiters(struct lull_timeline *t, const struct lull_found *work,
			 struct lull_vec *links)
{
	u64 end_ns = work->event.end_ns;
	struct lull_span moment = { end_ns > SLACK_NS ? end_ns - SLACK_NS : 0, end_ns + 1 };
	const struct lull_found *f;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(*f));
	for (u32 i = 0; i < t->lanes.n; i++) {
		const struct lull_tl_lane *lane = lull_timeline_lane(t, i);

		if (lane->source != LULL_NO_ROW &&
		    lull_sources[lane->source].table == LULL_TABLE_cuda_call &&
		    process_of(t, lane->group) ==
			    process_of(t, lull_timeline_lane(t, work->lane)->group))
			lull_detail_events(t, i, moment, MAX_LISTED, &events);
	}
	f = events.at;
	for (size_t i = 0; i < events.n; i++) {
		struct last last = { .is_found = false };

		if (f[i].event.class == LULL_CALLS_WAIT && f[i].event.start_ns < end_ns)
			last = awaited_by(t, &f[i]);
		if (last.is_found && is_same(&last.found, work))
			add_link(links, &f[i], LULL_IS_WAITER);
	}
	lull_vec_release(&events);
}

/* ---- who works while a thread waits ---- */

struct wait {
	u32 process;
	u32 group;  /* the thread that waits */
	u32 worker; /* the thread that is looked at; 0: all but the one that waits */
	bool is_gil;
};

/* How often each thread was seen at work in the span. */
static u32 *count_samples(struct lull_timeline *t, const struct wait *w, struct lull_span span)
{
	size_t n_lanes, n;
	struct lull_pysample_cols python;
	struct lull_sample_cols native;
	struct lull_cursor c;
	u32 *counts;

	lull_reader_dim(t->reader, LULL_TABLE_lane, &n_lanes);
	counts = lull_alloc(n_lanes + 1, sizeof(*counts));
	lull_cursor_init(&c, t->reader, LULL_TABLE_pysample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &python)) > 0)
		for (size_t i = 0; i < n; i++)
			counts[python.lane[i]] += python.start_ns[i] >= span.from_ns &&
						  python.start_ns[i] < span.to_ns &&
						  !python.is_idle[i] &&
						  (!w->is_gil || python.has_gil[i]);
	lull_cursor_release(&c);
	lull_cursor_init(&c, t->reader, LULL_TABLE_sample, span.from_ns, span.to_ns);
	while (!w->is_gil && (n = lull_cursor_next(&c, &native)) > 0)
		for (size_t i = 0; i < n; i++)
			counts[native.lane[i]] += native.start_ns[i] >= span.from_ns &&
						  native.start_ns[i] < span.to_ns;
	lull_cursor_release(&c);
	return counts;
}

static u32 busiest(struct lull_timeline *t, const struct wait *w, struct lull_span span)
{
	u32 *counts = count_samples(t, w, span), best = 0;
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(t->reader, LULL_TABLE_lane, &n_lanes);

	for (u32 i = 1; i <= n_lanes; i++)
		if (i != w->group && is_related(t, w->process, lanes[i - 1].process) &&
		    counts[i] > (best ? counts[best] : 0))
			best = i;
	free(counts);
	return best;
}

static bool is_deed(const struct lull_timeline *t, const struct lull_tl_lane *lane, const void *ctx)
{
	const struct wait *w = ctx;
	enum lull_table table;

	if (lane->source == LULL_NO_ROW)
		return false;
	table = lull_sources[lane->source].table;
	if (table != LULL_TABLE_range && table != LULL_TABLE_op && table != LULL_TABLE_pycall)
		return false;
	if (w->worker)
		return lane->group == w->worker;
	return lane->group != w->group && is_related(t, w->process, process_of(t, lane->group));
}

static bool is_sampled(const struct lull_timeline *t, const struct lull_tl_lane *lane,
		       const void *ctx)
{
	const struct wait *w = ctx;

	(void)t;
	return lane->source != LULL_NO_ROW && lane->group == w->worker &&
	       (lull_sources[lane->source].table == LULL_TABLE_pysample ||
		lull_sources[lane->source].table == LULL_TABLE_sample);
}

static void find_producer(struct lull_timeline *t, const struct lull_found *found, bool is_gil,
			  struct lull_vec *links)
{
	struct lull_span span = { found->event.start_ns, found->event.end_ns };
	u64 length_ns = span.to_ns - span.from_ns;
	struct wait w = { .group = lull_timeline_lane(t, found->lane)->group, .is_gil = is_gil };
	struct last last;

	if (length_ns < MIN_WAIT_NS)
		return;
	w.process = process_of(t, w.group);
	w.worker = busiest(t, &w, span);
	span.to_ns += SLACK_NS;
	if (!w.worker) {
		u64 near_ns = length_ns / 50 > MIN_NEAR_NS ? length_ns / 50 : MIN_NEAR_NS;

		span.from_ns = span.to_ns - (near_ns < length_ns ? near_ns : length_ns);
	}
	last = last_ended(t, span, is_deed, &w);
	if (!last.is_found && w.worker)
		last = last_ended(t, span, is_sampled, &w);
	if (last.is_found)
		add_link(links, &last.found, LULL_IS_PRODUCER);
}

/* ---- what ended an idle time ---- */

/* The first work of a device that begins in the window, if there is some. */
static bool first_work(struct lull_timeline *t, u32 device, struct lull_span window,
		       struct lull_found *first)
{
	const struct lull_found *f;
	struct lull_vec events;
	bool is_found = false;

	lull_vec_init(&events, sizeof(*f));
	for (u32 i = 0; i < t->lanes.n; i++) {
		const struct lull_tl_lane *lane = lull_timeline_lane(t, i);

		if (lane->source != LULL_NO_ROW &&
		    lull_sources[lane->source].flags & LULL_SOURCE_IS_WORK &&
		    lull_detail_device(t, lane->group) == device)
			lull_detail_events(t, i, window, MAX_LISTED, &events);
	}
	f = events.at;
	for (size_t i = 0; i < events.n; i++) {
		if (f[i].event.start_ns < window.from_ns ||
		    (is_found && f[i].event.start_ns >= first->event.start_ns))
			continue;
		*first = f[i];
		is_found = true;
	}
	lull_vec_release(&events);
	return is_found;
}

/* A piece of idle time may be followed by one of another cause: near its end first. */
static void find_next(struct lull_timeline *t, const struct lull_found *idle,
		      struct lull_vec *links)
{
	u32 device = lull_timeline_lane(t, idle->lane)->group;
	struct lull_found first;

	for (u64 reach_ns = 10000; reach_ns < MAX_REACH_NS; reach_ns *= 16) {
		struct lull_span window = { idle->event.end_ns, idle->event.end_ns + reach_ns };

		if (!first_work(t, device, window, &first))
			continue;
		add_link(links, &first, LULL_IS_NEXT);
		return;
	}
}

void lull_waits_find(struct lull_timeline *t, const struct lull_found *found,
		     struct lull_vec *links)
{
	const struct lull_tl_lane *lane = lull_timeline_lane(t, found->lane);
	const struct lull_lane_source *source = &lull_sources[lane->source];
	struct last last;

	if (lane->source == LULL_NO_ROW) {
		if (lane->line == LULL_LINE_IDLE)
			find_next(t, found, links);
	} else if (source->flags & LULL_SOURCE_IS_WORK) {
		find_waiters(t, found, links);
	} else if (source->table == LULL_TABLE_cuda_call && found->event.class == LULL_CALLS_WAIT) {
		last = awaited_by(t, found);
		if (last.is_found)
			add_link(links, &last.found, LULL_IS_AWAITED);
	} else if (source->table == LULL_TABLE_gil_wait) {
		find_producer(t, found, true, links);
	} else if (source->table == LULL_TABLE_oscall &&
		   (found->event.class == LULL_WAIT_LOCK || found->event.class == LULL_WAIT_IO)) {
		find_producer(t, found, false, links);
	}
}
