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
#include "timeline/name.h"

#define MAX_GAPS 2000u

static int by_length(const void *a, const void *b)
{
	const struct lull_rec *x = a, *y = b;
	u64 p = x->end_ns - x->start_ns, q = y->end_ns - y->start_ns;

	if (p != q)
		return p > q ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Single ones only: what was folded is shorter than what is kept. */
static void add_pieces(const struct lull_level *level, struct lull_span span, struct lull_vec *to)
{
	for (size_t i = 0; i < level->n; i++)
		if (level->recs[i].count == 1 && level->recs[i].end_ns > span.from_ns &&
		    level->recs[i].start_ns < span.to_ns)
			lull_vec_add(to, &level->recs[i], 1);
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
	const struct lull_timeline *t = q->report->timeline;
	const struct lull_level *level;
	const struct lull_rec *all;
	struct lull_span span;
	struct lull_vec found;
	struct lull_json j;
	u64 lane, limit;
	bool is_between;

	if (lull_args_u64(q->args, "lane", UINT32_MAX, 0, &lane, err) ||
	    lull_args_u64(q->args, "n", MAX_GAPS, 200, &limit, err) ||
	    lull_args_span(q->args, t->origin_ns, &span, err))
		return err->code;
	if (lane >= t->lanes.n || !lull_timeline_lane(t, (u32)lane)->lod.n_levels)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such lane");
	level = &lull_timeline_lane(t, (u32)lane)->lod.levels[0];
	lull_vec_init(&found, sizeof(struct lull_rec));
	is_between = lull_args_get(q->args, "between") != NULL;
	(is_between ? add_between : add_pieces)(level, span, &found);
	if (found.n)
		lull_sort(found.at, found.n, sizeof(*all), by_length);
	all = found.at;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n",
			   is_between ? found.n : lull_timeline_lane(t, (u32)lane)->n_events);
	lull_json_key(&j, "gaps");
	lull_json_array(&j);
	for (size_t i = 0; i < found.n && i < limit; i++) {
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
