/*
 * Doubles as whole numbers: what an integer cannot hold becomes the nearest one, on every machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "base/convert.h"
#include "record/clock.h"
#include "model/op_math.h"

/* Not known to the compiler, which would convert by its own rules. */
static f64 hidden(f64 value)
{
	volatile f64 at = value;

	return at;
}

static void numbers_that_fit_lose_their_fraction(void **state)
{
	(void)state;
	assert_true(lull_u64_of(hidden(2.9)) == 2);
	assert_true(lull_u64_of(hidden(0x1p64 - 0x1p11)) == UINT64_MAX - 0x7ff);
	assert_true(lull_i64_of(hidden(-2.9)) == -2);
	assert_true(lull_i64_of(hidden(-0x1p63)) == INT64_MIN);
	assert_true(lull_i64_of(hidden(0x1p63 - 0x1p10)) == INT64_MAX - 0x3ff);
}

static void what_does_not_fit_becomes_the_nearest_number(void **state)
{
	(void)state;
	assert_true(lull_u64_of(hidden(0x1p64)) == UINT64_MAX);
	assert_true(lull_u64_of(hidden(INFINITY)) == UINT64_MAX);
	assert_true(lull_u64_of(hidden(-1)) == 0);
	assert_true(lull_u64_of(hidden(-INFINITY)) == 0);
	assert_true(lull_u64_of(hidden(NAN)) == 0);
	assert_true(lull_i64_of(hidden(0x1p63)) == INT64_MAX);
	assert_true(lull_i64_of(hidden(INFINITY)) == INT64_MAX);
	assert_true(lull_i64_of(hidden(-INFINITY)) == INT64_MIN);
	assert_true(lull_i64_of(hidden(NAN)) == 0);
}

/*
 * The control page of a recorder that died early has no rate yet; a damaged event has any length.
 */
static void times_of_damaged_events_are_long_not_random(void **state)
{
	const struct lull_clock slow = { .tick_hz = 1000 }, none = { .tick_hz = 0 };

	(void)state;
	assert_true(lull_clock_dur_ns(&slow, UINT64_MAX) == UINT64_MAX);
	assert_true(lull_clock_dur_ns(&none, 1) == UINT64_MAX);
	assert_true(lull_clock_dur_ns(&none, 0) == 0);
	assert_true(lull_clock_dur_ns(&slow, 3) == 3000000);
}

/* A tensor of a size that only a damaged trace has. */
static void flops_of_impossible_shapes_are_large_not_random(void **state)
{
	const char *shapes = "[[1, 1, 99999999999999999999999], [1, 1, 1], []]";
	const char *inputs = "[\"\", \"\", \"\", \"[1]\", \"[0]\", \"[1]\", \"1\"]";
	f64 flops = lull_op_flops("aten::conv1d", shapes, inputs);

	(void)state;
	assert_true(flops > 1e23 && flops < 3e23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_that_fit_lose_their_fraction),
		cmocka_unit_test(what_does_not_fit_becomes_the_nearest_number),
		cmocka_unit_test(times_of_damaged_events_are_long_not_random),
		cmocka_unit_test(flops_of_impossible_shapes_are_large_not_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
