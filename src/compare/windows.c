#include "compare/windows.h"

#include <stdlib.h>

#include "model/step.h"

static int by_start(const void *a, const void *b)
{
	const struct lull_step *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The thread that counts most of the steps: a report of several ranks has several. */
static u32 main_lane(const struct lull_step *steps, size_t n)
{
	u32 best = 0;
	size_t n_best = 0;

	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && steps[end].lane == steps[i].lane; end++)
			continue;
		if (end - i > n_best) {
			n_best = end - i;
			best = steps[i].lane;
		}
	}
	return best;
}

size_t lull_compare_windows(struct lull_reader *r, struct lull_vec *spans)
{
	struct lull_steps steps;
	struct lull_step *at;
	u64 last_ns = 0;
	u32 lane;

	lull_steps_init(&steps, r, LULL_SPAN_ALL);
	at = steps.all.at;
	lane = main_lane(at, steps.all.n);
	if (steps.all.n)
		qsort(at, steps.all.n, sizeof(*at), by_start);
	for (size_t i = 0; i < steps.all.n; i++) {
		u64 end_ns = lull_span_end_ns(at[i].start_ns, at[i].dur_ns);
		u64 from_ns = at[i].start_ns > last_ns ? at[i].start_ns : last_ns;

		if (at[i].lane != lane || from_ns >= end_ns)
			continue;
		*(struct lull_span *)lull_vec_push(spans) = (struct lull_span){ from_ns, end_ns };
		last_ns = end_ns;
	}
	lull_steps_release(&steps);
	return 0;
}
