/*
 * Losses of two runs beside each other.
 */
#include <math.h>

#include "try/try_int.h"

/* Runs of the same program with other luck may lie so many times as far apart as those seen. */
#define LUCK 3

/* Numbers that were the same in so many runs of the program as it is are its results. */
#define FIRM_RUNS 2

static f64 apart(f64 a, f64 b)
{
	f64 scale = fmax(fabs(a), fabs(b));

	if (a == b || (isnan(a) && isnan(b)))
		return 0;
	if (!isfinite(a) || !isfinite(b))
		return INFINITY;
	return fabs(a - b) / scale;
}

f64 lull_try_values_apart(const struct lull_vec *a, const struct lull_vec *b)
{
	const f64 *x = a->at, *y = b->at;
	size_t n = a->n < b->n ? a->n : b->n;
	f64 most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, apart(x[i], y[i]));
	return most;
}

/* How far remedies together may change losses; 0 if all are exact. */
static f64 allowed(const struct lull_try_entry *e)
{
	f64 sum = 0;

	for (size_t i = 0; i < e->n; i++)
		sum += e->remedies[i]->is_exact ? 0 : e->remedies[i]->tolerance;
	return sum;
}

void lull_try_values_firm(struct lull_try *t, const struct lull_trial *trial)
{
	const f64 *first = t->values.at, *now = trial->seen.values.at;
	size_t n_known = t->firm.n;
	u32 *firm;

	while (t->firm.n < t->values.n)
		*(u32 *)lull_vec_push(&t->firm) = 1;
	firm = t->firm.at;
	/* A run that was ended early may have written fewer. */
	for (size_t i = 0; i < n_known && i < trial->seen.values.n; i++)
		firm[i] = firm[i] && apart(first[i], now[i]) == 0 ? firm[i] + 1 : 0;
}

/* Compare numbers of the output; which of them count is known better with each run. */
static void compare_output(const struct lull_try *t, struct lull_try_entry *e)
{
	const f64 *first = t->values.at, *now = e->values.at;
	const u32 *firm = t->firm.at;

	e->has_values = false;
	e->difference = 0;
	for (size_t i = 0; i < e->values.n && i < t->firm.n; i++) {
		if (firm[i] < FIRM_RUNS)
			continue;
		e->has_values = true;
		e->difference = fmax(e->difference, apart(first[i], now[i]));
	}
	e->is_equal = e->difference == 0;
}

void lull_try_values_note(const struct lull_try *t, struct lull_try_entry *e,
			  const struct lull_trial *trial)
{
	f64 difference = lull_try_values_apart(&t->values, &trial->seen.values);

	if (!t->values.n || !trial->seen.values.n)
		return;
	if (trial->has_output) {
		e->values.n = 0;
		lull_vec_add(&e->values, trial->seen.values.at, trial->seen.values.n);
		compare_output(t, e);
		return;
	}
	e->is_equal = (!e->has_values || e->is_equal) && difference == 0;
	e->has_values = true;
	e->difference = fmax(e->difference, difference);
}

bool lull_try_values_fit(const struct lull_try *t, struct lull_try_entry *e)
{
	if (e->values.n)
		compare_output(t, e);
	return !e->has_values || e->difference <= fmax(allowed(e), LUCK * t->drift);
}
