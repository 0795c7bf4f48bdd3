/*
 * The test against distributions whose answer is known.
 */
#include "unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "compare/shift.h"
#include "unit/random.h"

static void quantiles_and_shares_are_inverse(void **state)
{
	static const f64 shares[] = { 1e-9, 0.001, 0.025, 0.3, 0.5, 0.9, 0.99999 };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(shares); i++)
		assert_float_equal(lull_normal_share(lull_normal_quantile(shares[i])) / shares[i],
				   1, 1e-9);
	assert_float_equal(lull_normal_quantile(0.975), 1.959963985, 1e-8);
	assert_float_equal(lull_normal_quantile(0.5), 0, 1e-12);
}

static void a_shift_is_found_with_its_size(void **state)
{
	f64 a[40], b[40];
	struct test_random random = { 1 };
	struct lull_shift shift;

	(void)state;
	for (size_t i = 0; i < 40; i++) {
		a[i] = 10 + test_random_normal(&random);
		b[i] = 12 + test_random_normal(&random);
	}
	lull_shift_test(a, 40, b, 40, 0.9, &shift);
	assert_true(shift.p_above < 1e-6);
	assert_true(shift.low < 2 && 2 < shift.high);
	assert_true(fabs(shift.shift - 2) < 0.5);
	assert_true(0.6 < shift.spread && shift.spread < 1.5);
	/* The other way round everything is mirrored. */
	lull_shift_test(b, 40, a, 40, 0.9, &shift);
	assert_true(shift.p_above > 0.999);
	assert_true(shift.low < -2 && -2 < shift.high);
}

static void outliers_do_not_matter(void **state)
{
	f64 a[30], b[30];
	struct test_random random = { 2 };
	struct lull_shift shift;

	(void)state;
	for (size_t i = 0; i < 30; i++) {
		a[i] = 100 + test_random_normal(&random);
		b[i] = a[i];
	}
	b[7] = 1e9;
	lull_shift_test(a, 30, b, 30, 0.9, &shift);
	assert_true(shift.p_above > 0.2);
	assert_true(fabs(shift.shift) < 0.2);
}

/*
 * A pause that one step of thirty has: its mean counts, and the interval is as wide as it is
 * unsure.
 */
static void means_keep_rare_values(void **state)
{
	f64 a[30], b[30];
	struct test_random random = { 3 };
	struct lull_shift shift;

	(void)state;
	for (size_t i = 0; i < 30; i++) {
		a[i] = 100 + test_random_normal(&random);
		b[i] = a[i];
	}
	a[7] += 300;
	lull_shift_means(a, 30, b, 30, 0.9, &shift);
	assert_float_equal(shift.shift, -10, 1e-9);
	assert_true(shift.low < -20 && shift.high > 0);
	lull_shift_test(a, 30, b, 30, 0.9, &shift);
	assert_true(shift.shift > -1);
}

static void equal_values_are_no_evidence(void **state)
{
	f64 same[8] = { 5, 5, 5, 5, 5, 5, 5, 5 };
	struct lull_shift shift;

	(void)state;
	lull_shift_test(same, 8, same, 8, 0.9, &shift);
	assert_float_equal(shift.p_above, 0.5, 1e-9);
	assert_float_equal(shift.shift, 0, 0);
	assert_float_equal(shift.spread, 0, 0);
}

/*
 * The interval holds the true shift as often as it says, and so does the p-value, from 5 values on.
 */
static void intervals_hold_what_they_promise(void **state)
{
	static const size_t sizes[] = { 5, 10, 30 };
	struct test_random random = { 3 };
	f64 a[30], b[30];

	(void)state;
	for (size_t k = 0; k < LULL_COUNT_OF(sizes); k++) {
		int n_inside = 0, n_alarms = 0;

		for (int trial = 0; trial < 2000; trial++) {
			struct lull_shift shift;

			for (size_t i = 0; i < sizes[k]; i++) {
				a[i] = test_random_normal(&random);
				b[i] = test_random_normal(&random);
			}
			lull_shift_test(a, sizes[k], b, sizes[k], 0.9, &shift);
			n_inside += shift.low <= 0 && 0 <= shift.high;
			n_alarms += shift.p_above < 0.05;
		}
		assert_in_range(n_inside, 2000 * 87 / 100, 2000 * 93 / 100);
		assert_in_range(n_alarms, 2000 * 35 / 1000, 2000 * 65 / 1000);
	}
}

static void more_noise_needs_more_values(void **state)
{
	(void)state;
	/* 2 (2.12 + 1.645)^2 (5 % / 5 %)^2 = 28.3 */
	assert_int_equal(lull_shift_needed(0.05, 0.05, 0.017), 29);
	assert_int_equal(lull_shift_needed(0.10, 0.05, 0.017), 114);
	assert_int_equal(lull_shift_needed(0, 0.05, 0.017), 2);
	assert_true(lull_shift_needed(1, 0, 0.017) >= 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_and_shares_are_inverse),
		cmocka_unit_test(a_shift_is_found_with_its_size),
		cmocka_unit_test(outliers_do_not_matter),
		cmocka_unit_test(means_keep_rare_values),
		cmocka_unit_test(equal_values_are_no_evidence),
		cmocka_unit_test(intervals_hold_what_they_promise),
		cmocka_unit_test(more_noise_needs_more_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
