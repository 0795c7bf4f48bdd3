#include "compare/shift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/* Of the interquartile range of a normal distribution to its standard deviation. */
#define IQR_OF_SD 1.348979500392163

/* Farther from the median than this many standard deviations is an accident, not noise. */
#define CLIP_SD 4.0

/* Power that lull_shift_needed() plans for. */
#define POWER 0.95

/* One side, clipped. */
struct side {
	f64 mean;
	f64 variance; /* of one value */
	f64 n;
};

f64 lull_normal_share(f64 z)
{
	return 0.5 * erfc(-z / sqrt(2.0));
}

/*
 * Newton's method on lull_normal_share(), which is monotonous and smooth; a few steps are enough.
 */
f64 lull_normal_quantile(f64 share)
{
	/* First guess: the logistic distribution of the same slope in the middle. */
	f64 z = log(share / (1 - share)) / 1.702;

	for (int i = 0; i < 60; i++) {
		f64 density = exp(-z * z / 2) / sqrt(2 * M_PI);
		f64 step = (lull_normal_share(z) - share) / density;

		/* Far out the tangent overshoots. */
		step = step > 0.5 ? 0.5 : step < -0.5 ? -0.5 : step;
		z -= step;
		if (fabs(step) < 1e-12)
			break;
	}
	return z;
}

/*
 * The normal deviate that is as rare as t with `df` degrees of freedom, after Wallace; right to
 * three digits from df = 3 on. And the other way round.
 */
static f64 z_of_t(f64 t, f64 df)
{
	f64 z = (8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df));

	return t < 0 ? -z : z;
}

f64 lull_student_share(f64 t, f64 df)
{
	return lull_normal_share(z_of_t(t, df));
}

static f64 t_of_z(f64 z, f64 df)
{
	f64 scaled = z * (8 * df + 3) / (8 * df + 1);

	return sqrt(df * expm1(scaled * scaled / df));
}

/* Between order statistics, linearly. */
static f64 quantile(const f64 *sorted, size_t n, f64 share)
{
	f64 at = share * (f64)(n - 1);
	size_t ix = (size_t)at;
	f64 rest = at - (f64)ix;

	if (ix + 1 >= n)
		return sorted[n - 1];
	return sorted[ix] * (1 - rest) + sorted[ix + 1] * rest;
}

static f64 *sorted_copy(const f64 *values, size_t n)
{
	f64 *sorted = lull_alloc(n, sizeof(*sorted));

	memcpy(sorted, values, n * sizeof(*sorted));
	lull_sort_f64(sorted, n);
	return sorted;
}

/* How far from the median noise reaches. */
static f64 reach_of(const f64 *values, size_t n)
{
	f64 *sorted = sorted_copy(values, n);
	f64 reach = CLIP_SD / IQR_OF_SD * (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25));

	free(sorted);
	/* Where most values are the same, those that are not are the news. */
	return reach > 0 ? reach : INFINITY;
}

static struct side describe(const f64 *values, size_t n, f64 reach)
{
	struct side side = { .n = (f64)n };
	f64 *sorted = sorted_copy(values, n);
	f64 middle = quantile(sorted, n, 0.5);

	for (size_t i = 0; i < n; i++) {
		sorted[i] = fmin(fmax(sorted[i], middle - reach), middle + reach);
		side.mean += sorted[i] / side.n;
	}
	for (size_t i = 0; i < n; i++)
		side.variance += (sorted[i] - side.mean) * (sorted[i] - side.mean) / (side.n - 1);
	free(sorted);
	return side;
}

/* Degrees of freedom of the difference, after Welch and Satterthwaite. */
static f64 freedom(const struct side *a, const struct side *b)
{
	f64 x = a->variance / a->n, y = b->variance / b->n;

	return (x + y) * (x + y) / (x * x / (a->n - 1) + y * y / (b->n - 1));
}

/* Welch's t-test of two sides. */
static void test(struct side x, struct side y, f64 confidence, struct lull_shift *result)
{
	f64 error = sqrt(x.variance / x.n + y.variance / y.n), half;

	result->shift = y.mean - x.mean;
	result->spread = sqrt(((x.n - 1) * x.variance + (y.n - 1) * y.variance) / (x.n + y.n - 2));
	result->low = result->high = result->shift;
	if (error <= 0) {
		result->p_above = result->shift > 0 ? 0 : result->shift < 0 ? 1 : 0.5;
		return;
	}
	half = error * t_of_z(lull_normal_quantile(0.5 + confidence / 2), freedom(&x, &y));
	result->p_above = lull_normal_share(-z_of_t(result->shift / error, freedom(&x, &y)));
	result->low -= half;
	result->high += half;
}

void lull_shift_test(const f64 *a, size_t n_a, const f64 *b, size_t n_b, f64 confidence,
		     struct lull_shift *result)
{
	/*
	 * One reach for both: steps that are now and then twice as long would be an accident on the
	 * side that has fewer of them, and noise on the other.
	 */
	f64 reach = fmax(reach_of(a, n_a), reach_of(b, n_b));

	test(describe(a, n_a, reach), describe(b, n_b, reach), confidence, result);
}

void lull_shift_means(const f64 *a, size_t n_a, const f64 *b, size_t n_b, f64 confidence,
		      struct lull_shift *result)
{
	test(describe(a, n_a, INFINITY), describe(b, n_b, INFINITY), confidence, result);
}

size_t lull_shift_needed(f64 spread, f64 shift, f64 alpha)
{
	f64 z = lull_normal_quantile(1 - alpha) + lull_normal_quantile(POWER);
	f64 n = shift != 0 ? ceil(2 * z * z * spread * spread / (shift * shift)) : INFINITY;

	if (!(n < 1e12))
		return (size_t)1e12;
	return n < 2 ? 2 : (size_t)n;
}
