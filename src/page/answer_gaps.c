/*
 * gaps: the longest pieces of a lane, such as the idle times of a device, longest first.
 *
 *	gaps?lane=3&n=200[&from=&to=][&between=1]
 *	{"n": how many there are, "gaps": [[start, end, name], ...]}
 *
 * With `between`, what lies between the pieces of the lane instead: when a thread or a stream did
 * nothing of this kind.
 */
#include "page/page.h"

#include <stdlib.h>

#include "base/sort.h"
#include "base/vec.h"
#include "timeline/detail.h"
#include "timeline/name.h"

#define MAX_GAPS     2000u
#define MANY_AT_ONCE 65536u /* events that are looked at together */

struct wanted {
	struct lull_timeline *t;
	u32 lane;
	struct lull_span span;
	u64 limit;
};

static int by_length(const void *a, const void *b)
{
	const struct lull_rec *x = a, *y = b;
	u64 p = x->end_ns - x->start_ns, q = y->end_ns - y->start_ns;

	if (p != q)
		return p > q ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool does_touch(const struct lull_rec *rec, struct lull_span span)
{
	return rec->end_ns > span.from_ns && rec->start_ns < span.to_ns;
}

/* Single ones only: what was folded is shorter than what is kept. */
static void add_single(const struct lull_level *level, struct lull_span span, struct lull_vec *to)
{
	for (size_t i = 0; i < level->n; i++)
		if (level->recs[i].count == 1 && does_touch(&level->recs[i], span))
			lull_vec_add(to, &level->recs[i], 1);
}

static void keep_longest(struct lull_vec *found, size_t limit)
{
	if (found->n)
		lull_sort(found->at, found->n, sizeof(struct lull_rec), by_length);
	found->n = found->n < limit ? found->n : limit;
}

/* Those that begin in this part of the time. */
static void add_events(const struct wanted *w, struct lull_span part, struct lull_vec *to)
{
	const struct lull_found *e;
	struct lull_vec events;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(w->t, w->lane, part, SIZE_MAX, &events);
	e = events.at;
	for (size_t i = 0; i < events.n; i++) {
		struct lull_rec rec = { .start_ns = e[i].event.start_ns,
					.end_ns = e[i].event.end_ns,
					.name = e[i].event.name,
					.count = 1 };

		if (rec.start_ns >= part.from_ns && rec.start_ns < part.to_ns &&
		    does_touch(&rec, w->span))
			lull_vec_add(to, &rec, 1);
	}
	lull_vec_release(&events);
}

/* What folds hold, some of them at a time. */
static void add_folded(const struct wanted *w, struct lull_vec *to)
{
	const struct lull_level *level = &lull_timeline_lane(w->t, w->lane)->lod.levels[0];
	struct lull_span part = { 0, 0 };
	size_t n = 0;

	for (size_t i = 0; i < level->n; i++) {
		const struct lull_rec *rec = &level->recs[i];
		bool is_last = i + 1 == level->n;

		if (!does_touch(rec, w->span))
			continue;
		part.from_ns = n ? part.from_ns : rec->start_ns;
		n += rec->count;
		if (n < MANY_AT_ONCE && !is_last && does_touch(rec + 1, w->span))
			continue;
		part.to_ns = is_last ? rec->end_ns + 1 : rec[1].start_ns;
		add_events(w, part, to);
		keep_longest(to, w->limit);
		n = 0;
	}
}

static void add_pieces(const struct wanted *w, struct lull_vec *to)
{
	add_single(&lull_timeline_lane(w->t, w->lane)->lod.levels[0], w->span, to);
	if (to->n >= w->limit)
		return;
	to->n = 0;
	add_folded(w, to);
}

/* Lines that several share overlap: a gap begins where all of them have ended. */
static void add_between(const struct lull_level *level, struct lull_span span, struct lull_vec *to)
{
	u64 end_ns = level->n ? level->recs[0].end_ns : 0;

	for (size_t i = 1; i < level->n; i++) {
		struct lull_rec gap = { .start_ns = end_ns,
					.end_ns = level->recs[i].start_ns,
					.name = LULL_NAME_FIXED | LULL_FIXED_IDLE,
					.count = 1 };

		if (gap.end_ns > gap.start_ns && gap.end_ns > span.from_ns &&
		    gap.start_ns < span.to_ns)
			lull_vec_add(to, &gap, 1);
		end_ns = level->recs[i].end_ns > end_ns ? level->recs[i].end_ns : end_ns;
	}
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_timeline *t = q->report->timeline;
	const struct lull_level *level;
	const struct lull_rec *all;
	struct lull_vec found;
	struct lull_json j;
	struct wanted w;
	u64 lane, n;
	bool is_between;

	if (lull_args_u64(q->args, "lane", UINT32_MAX, 0, &lane, err) ||
	    lull_args_u64(q->args, "n", MAX_GAPS, 200, &w.limit, err) ||
	    lull_args_span(q->args, t->origin_ns, &w.span, err))
		return err->code;
	if (lane >= t->lanes.n || !lull_timeline_lane(t, (u32)lane)->lod.n_levels)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such lane");
	w.t = t;
	w.lane = (u32)lane;
	level = &lull_timeline_lane(t, (u32)lane)->lod.levels[0];
	lull_vec_init(&found, sizeof(struct lull_rec));
	is_between = lull_args_get(q->args, "between") != NULL;
	if (is_between)
		add_between(level, w.span, &found);
	else
		add_pieces(&w, &found);
	n = is_between ? found.n : lull_timeline_lane(t, (u32)lane)->n_events;
	keep_longest(&found, w.limit);
	all = found.at;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n", n);
	lull_json_key(&j, "gaps");
	lull_json_array(&j);
	for (size_t i = 0; i < found.n; i++) {
		lull_json_array(&j);
		lull_json_u64(&j, all[i].start_ns - t->origin_ns);
		lull_json_u64(&j, all[i].end_ns - t->origin_ns);
		lull_json_u64(&j, all[i].name);
		lull_json_end(&j);
	}
	lull_json_end(&j);
	lull_json_end(&j);
	lull_vec_release(&found);
	return LULL_OK;
}

const struct lull_answer lull_answer_gaps = {
	.name = "gaps",
	.type = "application/json",
	.run = run,
};
