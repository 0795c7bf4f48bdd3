/*
 * event: what is at a moment of a lane, with all its fields and links; between two events, the gap.
 *
 *	event?lane=3&t=1404572000
 */
#include "page/page.h"

#include <string.h>

#include "base/str.h"
#include "page/around.h"
#include "page/fields.h"
#include "page/links.h"
#include "timeline/detail.h"
#include "timeline/name.h"

#define NEAR_EVENTS 4096u

static void put_span(struct lull_json *j, const struct lull_timeline *t, u64 start_ns, u64 end_ns)
{
	lull_page_pair_u64(j, "start", start_ns - t->origin_ns);
	lull_page_pair_u64(j, "end", end_ns - t->origin_ns);
}

static void put_name(struct lull_json *j, const char *key, struct lull_reader *r, u32 name)
{
	struct lull_str text = LULL_STR_INIT;

	lull_name_text(&text, r, name);
	lull_json_key(j, key);
	lull_json_bytes(j, lull_str_text(&text), text.len);
	lull_str_release(&text);
}

static void put_event(struct lull_question *q, const struct lull_found *found)
{
	struct lull_timeline *t = q->report->timeline;
	const struct lull_tl_lane *lane = lull_timeline_lane(t, found->lane);
	struct lull_json j;

	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_text(&j, "type", "event");
	lull_page_pair_u64(&j, "lane", found->lane);
	lull_page_pair_text(&j, "row", lull_timeline_row(t, lane->row)->key);
	put_span(&j, t, found->event.start_ns, found->event.end_ns);
	put_name(&j, "name", q->reader, found->event.name);
	lull_page_pair_u64(&j, "nameId", found->event.name);
	lull_page_pair_u64(&j, "class", found->event.class);
	if (found->has_row)
		lull_fields_put(&j, q->reader, lull_sources[lane->source].table, found->block_ix,
				found->event.row);
	lull_links_put(&j, t, found);
	lull_around_put(&j, t, found);
	lull_json_end(&j);
}

/* The shortest event of those found that holds the moment, or the first there. */
static const struct lull_found *pick(const struct lull_vec *events, u64 at_ns)
{
	const struct lull_found *all = events->at, *best = NULL;

	for (size_t i = 0; i < events->n; i++) {
		if (all[i].event.start_ns > at_ns || all[i].event.end_ns < at_ns)
			continue;
		if (!best || all[i].event.end_ns - all[i].event.start_ns <=
				     best->event.end_ns - best->event.start_ns)
			best = &all[i];
	}
	return best;
}

/* The event of a lane that touches this moment, or nothing. */
static void put_neighbour(struct lull_json *j, const char *key, struct lull_question *q, u32 lane,
			  u64 at_ns)
{
	struct lull_vec events;
	const struct lull_found *found;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(q->report->timeline, lane, (struct lull_span){ at_ns, at_ns + 1 },
			   NEAR_EVENTS, &events);
	found = pick(&events, at_ns);
	if (found)
		put_name(j, key, q->reader, found->event.name);
	lull_vec_release(&events);
}

/*
 * The gap around a moment without event. The edges of records are exact, so it lies between two of
 * the finest level, or inside one that folds a few events.
 */
static struct lull_span gap_at(struct lull_timeline *t, u32 lane, u64 at_ns)
{
	const struct lull_level *level = &lull_timeline_lane(t, lane)->lod.levels[0];
	size_t i = lull_level_first(level, at_ns);
	struct lull_span gap = t->span;
	const struct lull_found *all;
	struct lull_vec events;

	if (i)
		gap.from_ns = level->recs[i - 1].end_ns;
	if (i < level->n)
		gap.to_ns = level->recs[i].start_ns;
	if (i == level->n || level->recs[i].start_ns > at_ns)
		return gap;
	gap = (struct lull_span){ level->recs[i].start_ns, level->recs[i].end_ns };
	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(t, lane, gap, NEAR_EVENTS, &events);
	all = events.at;
	for (size_t k = 0; k < events.n; k++) {
		if (all[k].event.end_ns <= at_ns && all[k].event.end_ns > gap.from_ns)
			gap.from_ns = all[k].event.end_ns;
		if (all[k].event.start_ns > at_ns && all[k].event.start_ns < gap.to_ns)
			gap.to_ns = all[k].event.start_ns;
	}
	lull_vec_release(&events);
	return gap;
}

static void put_gap(struct lull_question *q, u32 lane, u64 at_ns)
{
	struct lull_timeline *t = q->report->timeline;
	struct lull_span gap = gap_at(t, lane, at_ns);
	struct lull_json j;

	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_text(&j, "type", "gap");
	lull_page_pair_u64(&j, "lane", lane);
	lull_page_pair_text(&j, "row", lull_timeline_row(t, lull_timeline_lane(t, lane)->row)->key);
	put_span(&j, t, gap.from_ns, gap.to_ns);
	put_neighbour(&j, "before", q, lane, gap.from_ns);
	put_neighbour(&j, "after", q, lane, gap.to_ns);
	lull_json_end(&j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_timeline *t = q->report->timeline;
	const struct lull_found *found;
	struct lull_vec events;
	u64 lane, at_ns, slack;

	if (lull_args_u64(q->args, "lane", UINT32_MAX, 0, &lane, err) ||
	    lull_args_u64(q->args, "t", UINT64_MAX / 2, 0, &at_ns, err) ||
	    lull_args_u64(q->args, "slack", UINT64_MAX / 4, 0, &slack, err))
		return err->code;
	if (lane >= t->lanes.n || !lull_timeline_lane(t, (u32)lane)->lod.n_levels)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such lane");
	at_ns += t->origin_ns;
	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(t, (u32)lane, (struct lull_span){ at_ns, at_ns + 1 }, NEAR_EVENTS,
			   &events);
	found = pick(&events, at_ns);
	if (!found && slack) { /* a pointer is not that precise: what is next to it */
		struct lull_span span = { at_ns > slack ? at_ns - slack : 0, at_ns + slack };

		lull_detail_events(t, (u32)lane, span, NEAR_EVENTS, &events);
		found = events.n ? lull_vec_get(&events, 0) : NULL;
	}
	if (found)
		put_event(q, found);
	else
		put_gap(q, (u32)lane, at_ns);
	lull_vec_release(&events);
	return LULL_OK;
}

const struct lull_answer lull_answer_event = {
	.name = "event",
	.type = "application/json",
	.run = run,
};
