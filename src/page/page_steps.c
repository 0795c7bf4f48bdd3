#include "page/page_steps.h"

#include <stdlib.h>

#include "base/sort.h"
#include "model/step.h"
#include "model/step_found.h"
#include "page/page_why.h"

static int by_time(const void *a, const void *b)
{
	const struct lull_page_step *x = a, *y = b;

	return (x->span.from_ns > y->span.from_ns) - (x->span.from_ns < y->span.from_ns);
}

static bool are_recorded(const struct lull_rounds *rounds)
{
	return !rounds->all.n || rounds->source == LULL_ROUNDS_STEP ||
	       rounds->source == LULL_ROUNDS_HOOK;
}

static void take_rounds(struct lull_steps *to, const struct lull_subject *lead)
{
	*to = (struct lull_steps){ .are_found = true };
	lull_vec_init(&to->all, sizeof(struct lull_step));
	lull_steps_take(&to->all, &lead->rounds, &lead->chain, LULL_SPAN_ALL);
	lull_steps_measure(to, lead->reader);
}

static void collect(struct lull_steps *to, struct lull_page_report *report)
{
	enum lull_page_why_state state = lull_page_why(report, false);
	const struct lull_subject *lead = state == LULL_PAGE_WHY_DONE ? report->why->lead : NULL;

	if (lead && !are_recorded(&lead->rounds))
		take_rounds(to, lead);
	else if (state == LULL_PAGE_WHY_LARGE)
		lull_steps_init(to, report->slow, LULL_SPAN_ALL);
	else
		lull_steps_init_any(to, report->slow, LULL_SPAN_ALL);
}

void lull_page_steps(struct lull_page_report *report, struct lull_vec *steps)
{
	struct lull_steps all;
	const struct lull_step *s;

	lull_vec_init(steps, sizeof(struct lull_page_step));
	collect(&all, report);
	s = all.all.at;
	for (size_t i = 0; i < all.all.n; i++) {
		struct lull_page_step *step = lull_vec_push(steps);

		step->number = s[i].number;
		step->span = (struct lull_span){ s[i].start_ns,
						 lull_span_end_ns(s[i].start_ns, s[i].dur_ns) };
		step->busy_ns = s[i].busy_ns;
	}
	lull_steps_release(&all);
	if (steps->n)
		lull_sort(steps->at, steps->n, sizeof(struct lull_page_step), by_time);
}
