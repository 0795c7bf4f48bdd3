#include "unit/unit.h"

#include "base/duration.h"

static void expect(const char *text, u64 ns)
{
	struct lull_err err;
	u64 value = 0;

	assert_int_equal(lull_duration_parse(text, &value, &err), LULL_OK);
	assert_int_equal(value, ns);
}

static void units_and_fractions_are_exact(void **state)
{
	(void)state;
	expect("0", 0);
	expect("17", 17);
	expect("17ns", 17);
	expect("250us", 250000);
	expect("1.5s", 1500000000);
	expect("0.000000001s", 1);
	expect("2m", 120000000000);
	expect("1h", 3600000000000);
}

static void parts_are_added_up(void **state)
{
	(void)state;
	expect("1s2ms", 1002000000);
	expect("1m30s", 90000000000);
	expect("1s5", 1000000005);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "s", "1x", "-1s", "1.5.5s", "1s ", "99999999999999999999", "99999999999h"
	};
	struct lull_err err;
	u64 ns = 42;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(bad); i++)
		assert_int_equal(lull_duration_parse(bad[i], &ns, &err), LULL_E_USAGE);
	assert_int_equal(ns, 42);
	assert_string_equal(err.msg, "\"99999999999h\" is not a time such as 250ms, 1.5s or 1m30s");
}

static void a_bare_number_may_be_seconds(void **state)
{
	struct lull_err err;
	f64 seconds;

	(void)state;
	assert_int_equal(lull_duration_seconds("0.5", &seconds, &err), LULL_OK);
	assert_true(seconds == 0.5);
	assert_int_equal(lull_duration_seconds("250ms", &seconds, &err), LULL_OK);
	assert_true(seconds == 0.25);
	assert_int_equal(lull_duration_seconds("1m30s", &seconds, &err), LULL_OK);
	assert_true(seconds == 90);
	assert_int_equal(lull_duration_seconds("1e30", &seconds, &err), LULL_E_USAGE);
	assert_int_equal(lull_duration_seconds("inf", &seconds, &err), LULL_E_USAGE);
	assert_int_equal(lull_duration_seconds("-1", &seconds, &err), LULL_E_USAGE);
	assert_int_equal(lull_duration_seconds("", &seconds, &err), LULL_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_and_fractions_are_exact),
		cmocka_unit_test(parts_are_added_up),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_bare_number_may_be_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
