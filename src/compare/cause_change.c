#include "compare/cause_change.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "compare/decide.h"
#include "compare/shift.h"

/* As that of the step time. */
#define CONFIDENCE 0.90

/* Of each step, NAN if not known; causes below the bound of the list have a cost as well. */
static f64 cost_of(const struct lull_why *why, enum lull_cause_ix cause)
{
	const struct lull_finding *f = why ? lull_why_find(why, cause) : NULL;
	u32 n = why ? lull_why_n_steps(why) : 0;

	if (f)
		return f->cost_ns;
	return n && !*why->cannot ? (f64)why->lead->cost_ns[cause] / n : NAN;
}

/* What each steady step lost to the cause, or NULL where that is not known by step. */
static f64 *costs_of(const struct lull_why *why, enum lull_cause_ix cause, size_t *n)
{
	const u64 *by_step = why && why->lead ? why->lead->step_cost_ns : NULL;
	f64 *costs;

	*n = by_step ? lull_why_n_steps(why) : 0;
	/* Time beside kernels, such as that of pages that move, is not counted by step. */
	if (*n < LULL_DECIDE_MIN_VALUES || lull_causes[cause]->busy)
		return NULL;
	costs = lull_alloc(*n, sizeof(*costs));
	for (size_t i = 0; i < *n; i++)
		costs[i] = (f64)by_step[i * LULL_SUBJECT_CAUSES + cause];
	return costs;
}

static void compare(struct lull_cause_change *c, const struct lull_why *before,
		    const struct lull_why *after)
{
	struct lull_shift shift;
	size_t n_a, n_b;
	f64 *a = costs_of(before, c->cause, &n_a), *b = costs_of(after, c->cause, &n_b);

	c->has_interval = a && b;
	if (c->has_interval) {
		lull_shift_means(a, n_a, b, n_b, CONFIDENCE, &shift);
		c->low_ns = shift.low;
		c->high_ns = shift.high;
	}
	free(a);
	free(b);
}

void lull_cause_changes(const struct lull_why *before, const struct lull_why *after,
			struct lull_vec *to)
{
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		enum lull_cause_ix cause = (enum lull_cause_ix)i;
		struct lull_cause_change *c;

		if (lull_causes[i]->kind == LULL_CAUSE_BUSY ||
		    (!(before && lull_why_find(before, cause)) &&
		     !(after && lull_why_find(after, cause))))
			continue;
		c = lull_vec_push(to);
		*c = (struct lull_cause_change){ .cause = cause };
		c->cost_ns[0] = cost_of(before, cause);
		c->cost_ns[1] = cost_of(after, cause);
		compare(c, before, after);
	}
}
