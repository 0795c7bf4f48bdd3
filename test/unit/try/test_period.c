/*
 * After how many calls a program repeats them.
 */
#include "unit/unit.h"

#include "try/try_int.h"
#include "unit/random.h"

#define N      3000
#define ROUNDS 8

/* A row of calls, of which this share are others. */
static u32 period_of(u32 period, f64 share, u32 n)
{
	struct test_random random = { .state = 7 };
	static u32 calls[N];

	for (u32 i = 0; i < n; i++)
		calls[i] = test_random_share(&random) < share ? 1000000 + i
							      : i % period * (i % period);
	return lull_try_period(calls, n, ROUNDS);
}

static void the_shortest_period_is_found(void **state)
{
	(void)state;
	assert_int_equal(period_of(1, 0, N), 1);
	assert_int_equal(period_of(7, 0, N), 7);
	assert_int_equal(period_of(57, 0, N), 57);
	assert_int_equal(period_of(N / ROUNDS, 0, N), N / ROUNDS);
}

/* The inner loop of eight repeats nearly as well, but the outer one does so better. */
static void a_loop_inside_of_another_does_not_hide_it(void **state)
{
	u32 calls[57 * 40];

	(void)state;
	for (u32 i = 0; i < LULL_COUNT_OF(calls); i++)
		calls[i] = i % 57 ? (i % 57 - 1) % 7 : 100;
	assert_int_equal(lull_try_period(calls, LULL_COUNT_OF(calls), ROUNDS), 57);
}

static void some_other_calls_do_not_hide_it(void **state)
{
	(void)state;
	assert_int_equal(period_of(7, 0.02, N), 7);
}

static void what_does_not_repeat_has_none(void **state)
{
	(void)state;
	assert_int_equal(period_of(7, 0.5, N), 0);
	assert_int_equal(period_of(N / ROUNDS + 1, 0, N), 0);
	assert_int_equal(period_of(3, 0, ROUNDS - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_period_is_found),
		cmocka_unit_test(a_loop_inside_of_another_does_not_hide_it),
		cmocka_unit_test(some_other_calls_do_not_hide_it),
		cmocka_unit_test(what_does_not_repeat_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
