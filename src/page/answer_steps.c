/*
 * steps: how long each step took, and what its time went to.
 *
 *	{"n", "has_causes", "found",
 *	 "steps": [[number, start, end, busy, rest, by family x 8], ...]}
 *
 * Busy is the time with work on any device, as `lull stats` says it. The others add up to the
 * step: what each family of causes claims, copies and collectives that run alone among them, and
 * the rest. Where no causes were looked for, the rest is the busy time.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "page/page_steps.h"
#include "page/page_why.h"

#define MAX_STEPS 2000u

/* Both are sorted: steps of one thread follow each other. */
static void add_causes(struct lull_vec *steps, const struct lull_subject *lead)
{
	const struct lull_interval *p = lead->intervals.at;
	struct lull_page_step *s = steps->at;
	size_t first = 0;

	for (size_t i = 0; i < steps->n; i++) {
		while (first < lead->intervals.n && p[first].to_ns <= s[i].span.from_ns)
			first++;
		for (size_t k = first; k < lead->intervals.n && p[k].from_ns < s[i].span.to_ns;
		     k++) {
			struct lull_span cut =
				lull_span_cut((struct lull_span){ p[k].from_ns, p[k].to_ns },
					      s[i].span.from_ns, s[i].span.to_ns);

			s[i].idle_ns[lull_page_family((enum lull_cause_ix)p[k].cause)] +=
				cut.to_ns - cut.from_ns;
		}
	}
}

/*
 * Whether causes were looked for in this step, by its middle: rounds of devices do not begin when
 * steps do, so that the last step of warm-up has a little of the first cause, too.
 */
static bool is_explained(const struct lull_page_step *s, const struct lull_rounds *rounds)
{
	u64 middle_ns = s->span.from_ns + (s->span.to_ns - s->span.from_ns) / 2;

	return lull_rounds_n_steady(rounds) &&
	       middle_ns >= lull_round_begin_ns(rounds, rounds->first_steady) &&
	       middle_ns < lull_round_end_ns(rounds, (u32)rounds->all.n - 1);
}

/* What is left of a step when its causes are taken away; without causes, what devices say. */
static u64 rest_of(struct lull_page_step *s, const struct lull_rounds *rounds)
{
	u64 len_ns = s->span.to_ns - s->span.from_ns, idle_ns = 0;

	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		idle_ns += s->idle_ns[c];
	if (rounds && idle_ns && is_explained(s, rounds))
		return idle_ns < len_ns ? len_ns - idle_ns : 0;
	memset(s->idle_ns, 0, sizeof(s->idle_ns));
	s->idle_ns[LULL_N_CLASSES - 1] = len_ns - s->busy_ns;
	return s->busy_ns;
}

static void put_step(struct lull_json *j, const struct lull_timeline *t, struct lull_page_step *s,
		     const struct lull_rounds *rounds)
{
	u64 rest_ns = rest_of(s, rounds);

	lull_json_array(j);
	lull_json_u64(j, s->number);
	lull_json_u64(j, s->span.from_ns - t->origin_ns);
	lull_json_u64(j, s->span.to_ns - t->origin_ns);
	lull_json_u64(j, s->busy_ns);
	lull_json_u64(j, rest_ns);
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		lull_json_u64(j, s->idle_ns[c]);
	lull_json_end(j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	bool has_causes =
		lull_page_why(q->report, false) == LULL_PAGE_WHY_DONE && q->report->why->lead;
	struct lull_vec steps;
	struct lull_json j;
	char how[256];

	(void)err;
	if (q->report->told.steps) {
		fputs(q->report->told.steps, q->to);
		return LULL_OK;
	}
	lull_page_steps(q->report, &steps);
	if (has_causes)
		add_causes(&steps, q->report->why->lead);
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n", steps.n);
	lull_page_pair_bool(&j, "has_causes", has_causes);
	lull_json_key_text(
		&j, "found",
		has_causes ? lull_rounds_how(&q->report->why->lead->rounds, how, sizeof(how)) : "");
	lull_json_key(&j, "steps");
	lull_json_array(&j);
	for (size_t i = 0; i < steps.n && i < MAX_STEPS; i++)
		put_step(&j, q->report->timeline, lull_vec_get(&steps, i),
			 has_causes ? &q->report->why->lead->rounds : NULL);
	lull_json_end(&j);
	lull_json_end(&j);
	lull_vec_release(&steps);
	return LULL_OK;
}

const struct lull_answer lull_answer_steps = {
	.name = "steps",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
