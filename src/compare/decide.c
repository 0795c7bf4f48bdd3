/*
 * Ratios are compared as differences of logarithms, so that a slow-down of 5 % is the same at 1 ms
 * and at 1 s, and a long tail weighs less. A metric whose values may be 0 (allocations, copies) is
 * compared by differences against the median of the baseline instead.
 */
#include "compare/decide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "compare/shift.h"

/* Of the interval: one-sided 95 %, so that a pass is wrong about the threshold 1 time in 20. */
#define CONFIDENCE 0.90

void lull_samples_init(struct lull_samples *s)
{
	lull_vec_init(&s->values, sizeof(f64));
	lull_vec_init(&s->runs, sizeof(size_t));
}

void lull_samples_release(struct lull_samples *s)
{
	lull_vec_release(&s->values);
	lull_vec_release(&s->runs);
}

void lull_samples_add(struct lull_samples *s, f64 value)
{
	*(f64 *)lull_vec_push(&s->values) = value;
}

void lull_samples_end_run(struct lull_samples *s)
{
	size_t begin = s->runs.n ? ((size_t *)s->runs.at)[s->runs.n - 1] : 0;

	if (s->values.n > begin)
		*(size_t *)lull_vec_push(&s->runs) = s->values.n;
}

const char *lull_verdict_name(enum lull_verdict verdict)
{
	static const char *const names[] = { "pass", "regressed", "inconclusive", "not comparable",
					     "failed" };

	return names[verdict];
}

f64 lull_median(const f64 *values, size_t n)
{
	f64 *copy = lull_alloc(n, sizeof(*copy)), middle;

	memcpy(copy, values, n * sizeof(*copy));
	lull_sort_f64(copy, n);
	middle = n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
	free(copy);
	return middle;
}

static f64 mean(const f64 *values, size_t n)
{
	f64 sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (f64)n;
}

static f64 least(const f64 *values, size_t n)
{
	f64 low = values[0];

	for (size_t i = 1; i < n; i++)
		low = values[i] < low ? values[i] : low;
	return low;
}

static bool is_constant(const f64 *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (values[i] != values[0])
			return false;
	return true;
}

f64 lull_samples_run(const struct lull_samples *s, size_t run)
{
	const size_t *end = s->runs.at;
	size_t begin = run ? end[run - 1] : 0;

	return lull_median((const f64 *)s->values.at + begin, end[run] - begin);
}

void lull_samples_range(const struct lull_samples *s, f64 *low, f64 *high)
{
	*low = *high = s->runs.n ? lull_samples_run(s, 0) : 0;
	for (size_t i = 1; i < s->runs.n; i++) {
		f64 v = lull_samples_run(s, i);

		*low = v < *low ? v : *low;
		*high = v > *high ? v : *high;
	}
}

/* The median of each run. */
static void run_medians(const struct lull_samples *s, struct lull_vec *medians)
{
	for (size_t i = 0; i < s->runs.n; i++)
		*(f64 *)lull_vec_push(medians) = lull_samples_run(s, i);
}

f64 lull_samples_median(const struct lull_samples *s)
{
	struct lull_vec medians;
	f64 middle;

	if (!s->values.n)
		return 0;
	if (s->runs.n < LULL_DECIDE_MIN_RUNS)
		return lull_median(s->values.at, s->values.n);
	lull_vec_init(&medians, sizeof(f64));
	run_medians(s, &medians);
	middle = lull_median(medians.at, medians.n);
	lull_vec_release(&medians);
	return middle;
}

/* How far the medians of a side's runs lie apart, relative to the smallest. */
static f64 run_spread(const struct lull_samples *s, bool is_share)
{
	f64 low, high;

	lull_samples_range(s, &low, &high);
	return is_share ? high - low : low > 0 ? high / low - 1 : high > 0 ? INFINITY : 0;
}

static void cannot(struct lull_decision *d, enum lull_verdict verdict, const char *why)
{
	d->verdict = verdict;
	snprintf(d->why, sizeof(d->why), "%s", why);
}

/* How values are turned into what is compared, and back. */
struct scale {
	bool is_log;
	f64 unit; /* of linear ones: what counts as 1 */
	f64 sign; /* -1 where more is better, so that worse is always up */
};

static f64 *scaled(const f64 *values, size_t n, const struct scale *scale)
{
	f64 *to = lull_alloc(n, sizeof(*to));

	for (size_t i = 0; i < n; i++)
		to[i] = scale->sign * (scale->is_log ? log(values[i]) : values[i] / scale->unit);
	return to;
}

/* A difference of scaled values as the change that people read. */
static f64 change_of(f64 shift, const struct scale *scale)
{
	return scale->is_log ? expm1(shift) : shift;
}

static void judge(const struct lull_decide_rule *rule, const struct lull_shift *shift,
		  const struct scale *scale, struct lull_decision *d)
{
	f64 limit = scale->is_log ? log1p(rule->threshold) : rule->threshold;

	d->change = change_of(shift->shift, scale);
	d->low = change_of(shift->low, scale);
	d->high = change_of(shift->high, scale);
	d->has_change = true;
	d->p = shift->p_above;
	if (d->p < rule->alpha && shift->shift >= LULL_DECIDE_LEAST_SHIFT * limit) {
		d->verdict = LULL_REGRESSED;
	} else if (shift->high < limit) {
		d->verdict = LULL_PASS;
	} else {
		d->n_needed = lull_shift_needed(shift->spread, limit, rule->alpha);
		cannot(d, LULL_INCONCLUSIVE, "the noise hides a change of that size");
	}
}

/* Two sides that do not vary need no statistics. */
static void judge_constants(const struct lull_decide_rule *rule, const struct scale *scale,
			    struct lull_decision *d)
{
	f64 unit = rule->is_share ? 1 : d->before;

	d->change = scale->sign * (d->after - d->before) / (unit != 0 ? unit : 1);
	d->low = d->high = d->change;
	d->has_change = true;
	d->p = d->change > 0 ? 0 : 1;
	d->verdict = d->change >= LULL_DECIDE_LEAST_SHIFT * rule->threshold && d->change > 0
			     ? LULL_REGRESSED
			     : LULL_PASS;
}

static void compare(const struct lull_vec *before, const struct lull_vec *after,
		    const struct lull_decide_rule *rule, struct lull_decision *d)
{
	const f64 *a = before->at, *b = after->at;
	bool is_log = !rule->is_share && least(a, before->n) > 0 && least(b, after->n) > 0;
	struct scale scale = { is_log, 1, rule->is_higher_better ? -1 : 1 };
	struct lull_shift shift;
	f64 *scaled_a, *scaled_b;

	d->n_before = before->n;
	d->n_after = after->n;
	if (!is_log && !rule->is_share)
		scale.unit = d->before > 0 ? d->before : d->after > 0 ? d->after : 1;
	if (is_constant(a, before->n) && is_constant(b, after->n)) {
		judge_constants(rule, &scale, d);
		return;
	}
	scaled_a = scaled(a, before->n, &scale);
	scaled_b = scaled(b, after->n, &scale);
	lull_shift_test(scaled_a, before->n, scaled_b, after->n, CONFIDENCE, &shift);
	judge(rule, &shift, &scale, d);
	free(scaled_a);
	free(scaled_b);
}

/* Runs of one side that differ so much that steps of other runs prove nothing. */
static bool runs_disagree(const struct lull_samples *before, const struct lull_samples *after,
			  const struct lull_decide_rule *rule, struct lull_decision *d)
{
	f64 a = run_spread(before, rule->is_share), b = run_spread(after, rule->is_share);
	f64 most = a > b ? a : b;

	if (most <= rule->threshold)
		return false;
	d->n_needed = LULL_DECIDE_MIN_RUNS;
	d->by_run = true;
	d->n_before = before->runs.n;
	d->n_after = after->runs.n;
	cannot(d, LULL_INCONCLUSIVE, "");
	snprintf(d->why, sizeof(d->why), "runs of the same side differ by %.1f %%", 100 * most);
	return true;
}

void lull_decide(const struct lull_samples *before, const struct lull_samples *after,
		 const struct lull_decide_rule *rule, struct lull_decision *d)
{
	struct lull_vec a, b;

	memset(d, 0, sizeof(*d));
	d->n_before = before->values.n;
	d->n_after = after->values.n;
	d->p = 1;
	if (!before->values.n || !after->values.n) {
		cannot(d, LULL_NOT_COMPARABLE,
		       before->values.n	 ? "the new side has no such measurement"
		       : after->values.n ? "the baseline has no such measurement"
					 : "neither side has such a measurement");
		return;
	}
	d->before = lull_median(before->values.at, before->values.n);
	d->after = lull_median(after->values.at, after->values.n);
	d->mean_before = mean(before->values.at, before->values.n);
	d->mean_after = mean(after->values.at, after->values.n);
	if (before->values.n < LULL_DECIDE_MIN_VALUES || after->values.n < LULL_DECIDE_MIN_VALUES) {
		d->n_needed = LULL_DECIDE_MIN_VALUES;
		cannot(d, LULL_INCONCLUSIVE, "too few measurements");
		return;
	}
	if (before->runs.n < LULL_DECIDE_MIN_RUNS || after->runs.n < LULL_DECIDE_MIN_RUNS) {
		if (!runs_disagree(before, after, rule, d))
			compare(&before->values, &after->values, rule, d);
		return;
	}
	d->by_run = true;
	lull_vec_init(&a, sizeof(f64));
	lull_vec_init(&b, sizeof(f64));
	run_medians(before, &a);
	run_medians(after, &b);
	compare(&a, &b, rule, d);
	lull_vec_release(&a);
	lull_vec_release(&b);
}

bool lull_decide_is_tail(const struct lull_decision *d)
{
	f64 change = d->mean_before > 0 ? d->mean_after / d->mean_before - 1 : 0;

	return d->has_change && d->mean_before > 0 && (change < d->low || change > d->high) &&
	       fabs(change - d->change) >= LULL_DECIDE_LEAST_TAIL;
}

void lull_decide_say(const struct lull_decision *d, struct lull_str *to)
{
	f64 times = 1 + d->change;

	if (d->low == 0 && d->high == 0) {
		lull_str_puts(to, "the same");
	} else if (d->low <= 0 && d->high >= 0) {
		lull_str_addf(to,
			      "no visible change (on average %+.1f %%, between %+.1f and %+.1f)",
			      100 * d->change, 100 * d->low, 100 * d->high);
	} else {
		/* A step that takes no time at all is no number of times as fast. */
		if (times > 0)
			lull_str_addf(to, "on average %.2f x %s (", times > 1 ? times : 1 / times,
				      times > 1 ? "slower" : "faster");
		else
			lull_str_puts(to, "on average faster (");
		lull_str_addf(to, "%+.1f %%, between %+.1f and %+.1f)", 100 * d->change,
			      100 * d->low, 100 * d->high);
	}
}
