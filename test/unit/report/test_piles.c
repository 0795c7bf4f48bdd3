#include "unit/unit.h"

#include <stdlib.h>

#include "report/piles.h"

/* Numbers that are small at times and large at others. */
static u32 random_value(u64 *seed, unsigned bits)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (u32)(*seed >> 32) >> (32 - bits);
}

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

/* Everything that is known of a group agrees with a slow count of the same values. */
static void assert_agrees(struct lull_piles *p, u32 group, u32 *values, size_t n)
{
	struct lull_pile_fold fold = lull_piles_fold(p, group);
	unsigned __int128 squares = 0;
	u64 total = 0;

	for (size_t i = 0; i < n; i++) {
		total += values[i];
		squares += (u64)values[i] * values[i];
	}
	qsort(values, n, sizeof(*values), by_value);
	assert_int_equal(fold.n, n);
	assert_int_equal(fold.total_ns, total);
	assert_true(fold.squares == squares);
	assert_int_equal(fold.min_ns, values[0]);
	assert_int_equal(fold.max_ns, values[n - 1]);
	assert_float_equal(lull_piles_median(p, group, &fold),
			   ((f64)values[(n - 1) / 2] + (f64)values[n / 2]) / 2, 0);
}

static void sums_and_medians_are_those_of_the_values(void **state)
{
	static const size_t counts[] = { 1, 2, 16, 17, 64, 65, 66, 1000, 5001, 100000 };
	static const unsigned bits[] = { 1, 5, 12, 20, 32 };
	u32 *values = calloc(100000, sizeof(*values));
	u64 seed = 7;

	(void)state;
	for (size_t c = 0; c < LULL_COUNT_OF(counts) * LULL_COUNT_OF(bits); c++) {
		size_t n = counts[c % LULL_COUNT_OF(counts)];
		struct lull_piles p;

		lull_piles_init(&p);
		lull_piles_extend(&p, 2);
		for (size_t i = 0; i < n; i++) {
			values[i] = random_value(&seed, bits[c / LULL_COUNT_OF(counts)]);
			assert_true(lull_piles_add(&p, 1, values[i]));
			assert_true(lull_piles_add(&p, 0, i));
		}
		assert_agrees(&p, 1, values, n);
		lull_piles_release(&p);
	}
	free(values);
}

static void a_group_without_values_folds_to_nothing(void **state)
{
	struct lull_pile_fold fold;
	struct lull_piles p;

	(void)state;
	lull_piles_init(&p);
	lull_piles_extend(&p, 1);
	fold = lull_piles_fold(&p, 0);
	assert_int_equal(fold.n, 0);
	assert_float_equal(lull_piles_median(&p, 0, &fold), 0, 0);
	lull_piles_release(&p);
}

static void merged_groups_have_the_values_of_both(void **state)
{
	u32 values[3000];
	u64 seed = 3;
	struct lull_piles from, to;

	(void)state;
	lull_piles_init(&from);
	lull_piles_init(&to);
	lull_piles_extend(&from, 2);
	lull_piles_extend(&to, 1);
	for (size_t i = 0; i < LULL_COUNT_OF(values); i++) {
		values[i] = random_value(&seed, 24);
		lull_piles_add(i < 1000 ? &to : &from, i < 2000 ? 0 : 1, values[i]);
		if (i == 999) /* 1000 to 1999 are in from's first group, the rest in its second */
			assert_int_equal(lull_piles_fold(&to, 0).n, 1000);
	}
	assert_true(lull_piles_merge(&to, 0, &from, 0));
	assert_true(lull_piles_merge(&to, 0, &from, 1));
	assert_agrees(&to, 0, values, LULL_COUNT_OF(values));
	lull_piles_release(&to);
	lull_piles_release(&from);
}

static void count_values(void *ctx, u32 group, u64 dur_ns)
{
	(void)group;
	*(u64 *)ctx += dur_ns;
}

static void what_does_not_fit_is_refused_and_nothing_is_lost(void **state)
{
	u64 n = 0, sum = 0;
	struct lull_piles p;

	(void)state;
	lull_piles_init(&p);
	lull_piles_extend(&p, 1);
	assert_false(lull_piles_add(&p, 0, (u64)UINT32_MAX + 1));
	while (lull_piles_add(&p, 0, 3))
		n++;
	assert_in_range(n, LULL_PILES_BYTES / 5, LULL_PILES_BYTES / 4);
	lull_piles_each(&p, count_values, &sum);
	assert_int_equal(sum, 3 * n);
	lull_piles_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_medians_are_those_of_the_values),
		cmocka_unit_test(a_group_without_values_folds_to_nothing),
		cmocka_unit_test(merged_groups_have_the_values_of_both),
		cmocka_unit_test(what_does_not_fit_is_refused_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
