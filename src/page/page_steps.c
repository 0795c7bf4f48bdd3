#include "page/page_steps.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/step.h"
#include "page/page_why.h"

static void add_recorded(struct lull_vec *to, struct lull_reader *r)
{
	struct lull_steps steps;
	const struct lull_step *s;

	lull_steps_init(&steps, r, LULL_SPAN_ALL);
	s = steps.all.at;
	for (size_t i = 0; i < steps.all.n; i++) {
		struct lull_page_step *step = lull_vec_push(to);

		step->number = s[i].number;
		step->span = (struct lull_span){ s[i].start_ns,
						 lull_span_end_ns(s[i].start_ns, s[i].dur_ns) };
		step->busy_ns = s[i].busy_ns;
	}
	lull_steps_release(&steps);
}

static void add_found(struct lull_vec *to, const struct lull_why *why)
{
	const struct lull_rounds *rounds = &why->lead->rounds;

	for (u32 i = 0; i < rounds->all.n; i++) {
		struct lull_page_step *step = lull_vec_push(to);

		step->number = i;
		step->span = (struct lull_span){ lull_round_begin_ns(rounds, i),
						 lull_round_end_ns(rounds, i) };
	}
}

static int by_time(const void *a, const void *b)
{
	const struct lull_page_step *x = a, *y = b;

	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

/* The last step that nothing ended ends with its work. */
static void end_last(struct lull_vec *steps, const struct lull_rounds *rounds)
{
	const struct lull_round *at = rounds->all.at;
	struct lull_page_step *s = steps->at;

	for (size_t i = 0; i < steps->n && rounds->all.n; i++) {
		if (s[i].span.from_ns == at[rounds->all.n - 1].mark_ns &&
		    rounds->last_ns > s[i].span.from_ns && rounds->last_ns < s[i].span.to_ns)
			s[i].span.to_ns = rounds->last_ns;
	}
}

void lull_page_steps(struct lull_page_report *report, struct lull_vec *steps)
{
	const struct lull_rounds *rounds = NULL;

	lull_vec_init(steps, sizeof(struct lull_page_step));
	if (lull_page_why(report, false) == LULL_PAGE_WHY_DONE && report->why->lead)
		rounds = &report->why->lead->rounds;
	if (!rounds || !rounds->all.n || rounds->source == LULL_ROUNDS_STEP ||
	    rounds->source == LULL_ROUNDS_HOOK)
		add_recorded(steps, report->slow);
	if (rounds && steps->n)
		end_last(steps, rounds);
	else if (rounds)
		add_found(steps, report->why);
	if (steps->n)
		lull_sort(steps->at, steps->n, sizeof(struct lull_page_step), by_time);
}
