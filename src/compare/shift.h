/*
 * shift - whether one set of measurements is above another, by how much, and how sure that is.
 *
 * What it gives:  a one-sided p-value, the shift with its confidence interval, and how many
 *                 measurements per side are needed to find a given shift.
 * Method:         Welch's t-test on values clipped to 4 robust standard deviations around their
 *                 side's median. It is as powerful as possible on ordinary noise (a rank test needs
 *                 5 % more measurements), and a single step that took a second has no effect.
 * Units:          those of the values; pass logarithms to compare ratios.
 * Cost:           O(n log n).
 */
#ifndef LULL_COMPARE_SHIFT_H
#define LULL_COMPARE_SHIFT_H

#include "base/types.h"

struct lull_shift {
	f64 p_above; /* chance to see this or more if b does not lie above a */
	f64 shift;   /* b - a */
	f64 low;     /* of the confidence interval of the shift */
	f64 high;
	f64 spread; /* standard deviation inside a side, pooled */
};

/*
 * Compare `b` with `a`, at least two values each, in any order; neither is changed. `confidence` is
 * that of the interval, such as 0.9.
 */
void lull_shift_test(const f64 *a, size_t n_a, const f64 *b, size_t n_b, f64 confidence,
		     struct lull_shift *result);

/* The same without clipping: where rare large values are what is measured, not an accident. */
void lull_shift_means(const f64 *a, size_t n_a, const f64 *b, size_t n_b, f64 confidence,
		      struct lull_shift *result);

/*
 * Measurements a side that find a shift of this size in 95 of 100 comparisons, with `alpha` false
 * alarms, where the noise has this spread. At least 2.
 */
size_t lull_shift_needed(f64 spread, f64 shift, f64 alpha);

/* The value below which this share (0 to 1, exclusive) of a standard normal distribution lies. */
f64 lull_normal_quantile(f64 share);

/* The share of a standard normal distribution that lies below z. */
f64 lull_normal_share(f64 z);

/* The same for Student's distribution with `df` degrees of freedom, at least 1. */
f64 lull_student_share(f64 t, f64 df);

#endif
