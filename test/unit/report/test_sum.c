#include "unit/unit.h"

#include "report/sum.h"

struct values {
	const u64 *at;
	size_t n;
	u64 n_groups; /* value i goes to group i % n_groups */
	unsigned n_scans;
};

static void scan(void *ctx, struct lull_sum *sum)
{
	struct values *v = ctx;

	v->n_scans++;
	for (size_t i = 0; i < v->n; i++)
		lull_sum_add(sum, lull_sum_group(sum, i % v->n_groups), v->at[i]);
}

static struct lull_sum_group first_group(struct values *v)
{
	struct lull_sum_group group;
	struct lull_sum sum;

	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, v);
	group = *(struct lull_sum_group *)lull_vec_get(&sum.groups, 0);
	lull_sum_release(&sum);
	return group;
}

#define GROUP_OF(...)                                                         \
	({                                                                    \
		const u64 values_[] = { __VA_ARGS__ };                        \
		struct values v_ = { values_, LULL_COUNT_OF(values_), 1, 0 }; \
		first_group(&v_);                                             \
	})

static void the_median_of_an_odd_count_is_the_middle_one(void **state)
{
	(void)state;
	assert_float_equal(GROUP_OF(7).median_ns, 7, 0);
	assert_float_equal(GROUP_OF(9, 1, 5).median_ns, 5, 0);
	assert_float_equal(GROUP_OF(4, 4, 4, 4, 1000000000).median_ns, 4, 0);
}

static void the_median_of_an_even_count_is_the_mean_of_the_middle_two(void **state)
{
	(void)state;
	assert_float_equal(GROUP_OF(1, 2).median_ns, 1.5, 0);
	assert_float_equal(GROUP_OF(10000000000, 2, 1, 3).median_ns, 2.5, 0);
	assert_float_equal(GROUP_OF(0, 18446744073709551615u).median_ns, 9223372036854775808.0, 0);
}

static void the_deviation_is_the_one_of_a_sample(void **state)
{
	struct lull_sum_group group = GROUP_OF(2, 4, 4, 4, 5, 5, 7, 9);

	(void)state;
	assert_float_equal(lull_sum_deviation(&group), 2.138089935, 1e-9);
	group = GROUP_OF(5);
	assert_float_equal(lull_sum_deviation(&group), 0, 0);
	group = GROUP_OF(5, 5, 5);
	assert_float_equal(lull_sum_deviation(&group), 0, 0);
}

static void a_small_deviation_of_large_values_is_not_rounded_away(void **state)
{
	struct lull_sum_group group =
		GROUP_OF(3600000000000, 3600000000001, 3600000000002, 3600000000003);

	(void)state;
	assert_float_equal(lull_sum_deviation(&group), 1.290994449, 1e-9);
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static void medians_of_many_values_agree_with_sorting_them(void **state)
{
	enum { N = 20000 };
	u64 *values = calloc(N, sizeof(*values)), seed = 1;
	struct values v = { values, N, 1, 0 };
	struct lull_sum_group group;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		values[i] = seed >> (20 + seed % 40);
	}
	group = first_group(&v);
	qsort(values, N, sizeof(*values), by_value);
	assert_float_equal(group.median_ns, (f64)(values[N / 2 - 1] + values[N / 2]) / 2, 0.5);
	assert_true(v.n_scans <= 5);
	free(values);
}

static void many_groups_share_the_memory_and_stay_exact(void **state)
{
	enum { GROUPS = 100000 };
	u64 *values = calloc(3 * GROUPS, sizeof(*values));
	struct values v = { values, 3 * GROUPS, GROUPS, 0 };
	const struct lull_sum_group *groups;
	struct lull_sum sum;

	(void)state;
	for (u64 i = 0; i < GROUPS; i++) {
		values[i] = 3000000 + i;
		values[i + GROUPS] = 1;
		values[i + 2 * GROUPS] = 1000 * i + 7;
	}
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &v);
	groups = sum.groups.at;
	assert_int_equal(sum.groups.n, GROUPS);
	for (u64 i = 0; i < GROUPS; i++) {
		u64 a = 3000000 + i, b = 1000 * i + 7;

		assert_float_equal(groups[i].median_ns, (f64)(a < b ? a : b), 0);
	}
	lull_sum_release(&sum);
	free(values);
}

/* One value that cannot be kept comes when others have been. */
static void values_that_stop_being_kept_are_counted_once(void **state)
{
	enum { N = 5001 };
	u64 values[N];
	struct values v = { values, N, 1, 0 };
	struct lull_sum_group group;
	u64 total = 0;

	(void)state;
	for (u64 i = 0; i < N; i++) {
		values[i] = i == 3000 ? 5000000000 : 7 * (i * 1237 % N);
		total += values[i];
	}
	group = first_group(&v);
	assert_true(v.n_scans > 1);
	qsort(values, N, sizeof(*values), by_value);
	assert_int_equal(group.n, N);
	assert_int_equal(group.total_ns, total);
	assert_int_equal(group.min_ns, 0);
	assert_int_equal(group.max_ns, 5000000000);
	assert_float_equal(group.median_ns, (f64)values[N / 2], 0);
}

static void values_that_are_kept_are_looked_at_once(void **state)
{
	const u64 values[] = { 3, 1, 2 };
	struct values v = { values, 3, 1, 0 };

	(void)state;
	assert_float_equal(first_group(&v).median_ns, 2, 0);
	assert_int_equal(v.n_scans, 1);
}

static void totals_and_extremes_are_those_of_the_values(void **state)
{
	struct lull_sum_group group = GROUP_OF(2, 1, 3);

	(void)state;
	assert_int_equal(group.total_ns, 6);
	assert_int_equal(group.min_ns, 1);
	assert_int_equal(group.max_ns, 3);
	assert_int_equal(group.n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_of_an_odd_count_is_the_middle_one),
		cmocka_unit_test(the_median_of_an_even_count_is_the_mean_of_the_middle_two),
		cmocka_unit_test(the_deviation_is_the_one_of_a_sample),
		cmocka_unit_test(a_small_deviation_of_large_values_is_not_rounded_away),
		cmocka_unit_test(medians_of_many_values_agree_with_sorting_them),
		cmocka_unit_test(many_groups_share_the_memory_and_stay_exact),
		cmocka_unit_test(values_that_stop_being_kept_are_counted_once),
		cmocka_unit_test(values_that_are_kept_are_looked_at_once),
		cmocka_unit_test(totals_and_extremes_are_those_of_the_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
