/*
 * Changes of level in simulated rows whose answer is known: what is found, where, and what is not.
 */
#include "unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "compare/changepoint.h"
#include "unit/random.h"

#define N_COMMITS 200
#define N_CHANGES 3
#define N_SEEDS	  (200 / (int)test_stride(5))
#define NEAR	  3

struct rates {
	int n_found; /* true changes with one near them */
	int n_wrong; /* changes that are not near a true one */
	int n_whole; /* rows with all changes found, and at most one wrong one */
};

/* Three changes of `size`, up or down, at least 20 values from each other and from the ends. */
static void simulate(u64 seed, f64 size, f64 noise, f64 *values, size_t *at)
{
	struct test_random random = { seed * 7919 + 1 };
	f64 level = 10e6;

	for (size_t k = 0; k < N_CHANGES; k++)
		at[k] = 20 + 60 * k + test_random_bits(&random) % 40;
	for (size_t i = 0, k = 0; i < N_COMMITS; i++) {
		if (k < N_CHANGES && i == at[k]) {
			level *= test_random_bits(&random) % 2 ? 1 + size : 1 / (1 + size);
			k++;
		}
		values[i] = level * (1 + noise * test_random_normal(&random));
	}
}

static bool is_near(size_t a, size_t b)
{
	return (a > b ? a - b : b - a) <= NEAR;
}

static void count(const struct lull_changepoints *found, const size_t *at, struct rates *rates)
{
	const struct lull_changepoint *all = found->all.at;
	int n_found = 0, n_wrong = 0;

	for (size_t k = 0; k < N_CHANGES; k++)
		for (size_t i = 0; i < found->all.n; i++)
			if (is_near(all[i].ix, at[k])) {
				n_found++;
				break;
			}
	for (size_t i = 0; i < found->all.n; i++) {
		bool is_true = false;

		for (size_t k = 0; k < N_CHANGES; k++)
			is_true |= is_near(all[i].ix, at[k]);
		n_wrong += !is_true;
	}
	rates->n_found += n_found;
	rates->n_wrong += n_wrong;
	rates->n_whole += n_found == N_CHANGES && n_wrong <= 1;
}

static struct rates try_seeds(int n_seeds, f64 size, f64 noise)
{
	struct rates rates = { 0 };
	f64 values[N_COMMITS];
	size_t at[N_CHANGES];

	for (int seed = 1; seed <= n_seeds; seed++) {
		struct lull_changepoints found;

		simulate((u64)seed, size, noise, values, at);
		lull_changepoints_find(&found, values, N_COMMITS, false);
		count(&found, at, &rates);
		lull_changepoints_release(&found);
	}
	return rates;
}

static void three_changes_of_three_percent_are_found_in_two_hundred_commits(void **state)
{
	struct rates rates = try_seeds(N_SEEDS, 0.03, 0.01);

	(void)state;
	print_message("%d of %d changes found within %d commits, %d wrong ones; %d of %d rows "
		      "whole\n",
		      rates.n_found, N_CHANGES * N_SEEDS, NEAR, rates.n_wrong, rates.n_whole,
		      N_SEEDS);
	assert_true(rates.n_found * 100 >= N_CHANGES * N_SEEDS * 99);
	assert_true(rates.n_wrong * 100 <= N_SEEDS * 5);
	assert_true(rates.n_whole * 100 >= N_SEEDS * 97);
}

static void the_first_seeds_are_right_one_by_one(void **state)
{
	struct rates rates = try_seeds(10, 0.03, 0.01);

	(void)state;
	assert_int_equal(rates.n_whole, 10);
}

static void noise_alone_rarely_looks_like_a_change(void **state)
{
	static const size_t lengths[] = { 8, 12, 20, 50, 200 };
	f64 values[N_COMMITS];

	(void)state;
	for (size_t k = 0; k < LULL_COUNT_OF(lengths); k++) {
		int n_alarms = 0, n_rows = 1000 / (int)test_stride(5);
		struct test_random random = { 77 + k };

		for (int row = 0; row < n_rows; row++) {
			struct lull_changepoints found;

			for (size_t i = 0; i < lengths[k]; i++)
				values[i] = 10 * (1 + 0.01 * test_random_normal(&random));
			lull_changepoints_find(&found, values, lengths[k], false);
			n_alarms += found.all.n > 0;
			lull_changepoints_release(&found);
		}
		print_message("%zu values: %d of %d rows with a change that is none\n", lengths[k],
			      n_alarms, n_rows);
		assert_true(n_alarms * 100 <= n_rows * 5);
	}
}

static void one_bad_run_is_no_change(void **state)
{
	f64 values[60];
	struct test_random random = { 5 };
	struct lull_changepoints found;

	(void)state;
	for (size_t i = 0; i < 60; i++)
		values[i] = 10 * (1 + 0.01 * test_random_normal(&random));
	values[17] = 100;
	values[41] = 1;
	lull_changepoints_find(&found, values, 60, false);
	assert_int_equal(found.all.n, 0);
	lull_changepoints_release(&found);
}

static void a_metric_that_never_varies_changes_exactly_there(void **state)
{
	struct lull_changepoint *change;
	struct lull_changepoints found;
	f64 values[30];

	(void)state;
	for (size_t i = 0; i < 30; i++)
		values[i] = i < 12 ? 118 : 124;
	lull_changepoints_find(&found, values, 30, false);
	assert_int_equal(found.all.n, 1);
	change = found.all.at;
	assert_int_equal(change->ix, 12);
	assert_float_equal(change->before, 118, 0);
	assert_float_equal(change->after, 124, 0);
	assert_float_equal(change->change, 6.0 / 118, 1e-9);
	assert_true(change->low < change->change && change->change < change->high);
	lull_changepoints_release(&found);
	/* The same as shares is a difference; and rows with zeros are rows. */
	for (size_t i = 0; i < 30; i++)
		values[i] = i < 12 ? 0 : 0.25;
	lull_changepoints_find(&found, values, 30, true);
	assert_int_equal(found.all.n, 1);
	change = found.all.at;
	assert_int_equal(change->ix, 12);
	assert_float_equal(change->change, 0.25, 1e-9);
	lull_changepoints_release(&found);
}

static void few_values_say_nothing(void **state)
{
	const f64 values[] = { 1, 1, 1, 1, 9, 9, 9 };
	struct lull_changepoints found;

	(void)state;
	lull_changepoints_find(&found, values, LULL_COUNT_OF(values), false);
	assert_int_equal(found.all.n, 0);
	lull_changepoints_release(&found);
	lull_changepoints_find(&found, values, 0, false);
	assert_int_equal(found.all.n, 0);
	lull_changepoints_release(&found);
}

static void long_rows_are_looked_at_from_their_end(void **state)
{
	size_t n = 6000;
	f64 *values = calloc(n, sizeof(*values));
	struct lull_changepoints found;

	(void)state;
	assert_non_null(values);
	for (size_t i = 0; i < n; i++)
		values[i] = i < 500 ? 5 : i < 5900 ? 10 : 11;
	lull_changepoints_find(&found, values, n, false);
	assert_int_equal(found.all.n, 1);
	assert_int_equal(((struct lull_changepoint *)found.all.at)->ix, 5900);
	lull_changepoints_release(&found);
	free(values);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_changes_of_three_percent_are_found_in_two_hundred_commits),
		cmocka_unit_test(the_first_seeds_are_right_one_by_one),
		cmocka_unit_test(noise_alone_rarely_looks_like_a_change),
		cmocka_unit_test(one_bad_run_is_no_change),
		cmocka_unit_test(a_metric_that_never_varies_changes_exactly_there),
		cmocka_unit_test(few_values_say_nothing),
		cmocka_unit_test(long_rows_are_looked_at_from_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
