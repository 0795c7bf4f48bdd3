/*
 * next: the neighbour of an event in its lane, by time or by name.
 *
 *	next?lane=3&t=1404572000&dir=1[&name=17]	the next that starts after t
 *	next?lane=3&t=1404572000&dir=0			the last that starts before t
 */
#include "page/page.h"

#include "timeline/detail.h"

#define FIRST_LOOK  1000000u /* ns, then four times as far, and so on */
#define MANY_EVENTS 100000u  /* at which looking further at once would take too much memory */

struct wanted {
	u32 lane;
	u64 at_ns;
	u64 name; /* UINT64_MAX for any */
	bool is_forward;
};

static const struct lull_found *pick(const struct lull_vec *events, const struct wanted *w)
{
	const struct lull_found *all = events->at, *best = NULL;

	for (size_t i = 0; i < events->n; i++) {
		u64 start_ns = all[i].event.start_ns;

		if (w->name != UINT64_MAX && all[i].event.name != w->name)
			continue;
		if (w->is_forward && start_ns > w->at_ns && !best)
			best = &all[i];
		if (!w->is_forward && start_ns < w->at_ns)
			best = &all[i];
	}
	return best;
}

static void put(struct lull_question *q, const struct lull_found *found)
{
	struct lull_json j;

	lull_json_init(&j, q->to);
	lull_json_object(&j);
	if (found) {
		lull_page_pair_u64(&j, "lane", found->lane);
		lull_page_pair_u64(&j, "start",
				   found->event.start_ns - q->report->timeline->origin_ns);
		lull_page_pair_u64(&j, "end", found->event.end_ns - q->report->timeline->origin_ns);
	}
	lull_json_end(&j);
}

static int parse(struct lull_question *q, struct wanted *w, struct lull_err *err)
{
	u64 lane, at_ns, dir;

	if (lull_args_u64(q->args, "lane", UINT32_MAX, 0, &lane, err) ||
	    lull_args_u64(q->args, "t", UINT64_MAX / 2, 0, &at_ns, err) ||
	    lull_args_u64(q->args, "dir", 1, 1, &dir, err) ||
	    lull_args_u64(q->args, "name", UINT32_MAX, UINT64_MAX, &w->name, err))
		return err->code;
	if (lane >= q->report->timeline->lanes.n)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such lane");
	w->lane = (u32)lane;
	w->at_ns = at_ns + q->report->timeline->origin_ns;
	w->is_forward = dir;
	return LULL_OK;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_timeline *t = q->report->timeline;
	const struct lull_found *found = NULL;
	struct lull_vec events;
	struct wanted w = { 0 };
	u64 from_ns, to_ns, width = FIRST_LOOK;

	if (parse(q, &w, err))
		return err->code;
	lull_vec_init(&events, sizeof(struct lull_found));
	from_ns = to_ns = w.at_ns;
	while (!found) {
		struct lull_span span;

		if (w.is_forward)
			span = (struct lull_span){ to_ns, lull_span_end_ns(to_ns, width) };
		else
			span = (struct lull_span){ from_ns > width ? from_ns - width : 0, from_ns };
		events.n = 0;
		lull_detail_events(t, w.lane, span, SIZE_MAX, &events);
		found = pick(&events, &w);
		from_ns = span.from_ns;
		to_ns = span.to_ns;
		if (w.is_forward ? to_ns >= t->span.to_ns : from_ns <= t->span.from_ns)
			break;
		if (events.n < MANY_EVENTS)
			width *= 4;
	}
	put(q, found);
	lull_vec_release(&events);
	return LULL_OK;
}

const struct lull_answer lull_answer_next = {
	.name = "next",
	.type = "application/json",
	.run = run,
};
