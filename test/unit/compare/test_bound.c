/*
 * Bounds as people write them, and what is said about those that are wrong.
 */
#include "unit/unit.h"

#include "compare/bound.h"

static f64 limit_of(const char *text, const char *spec, struct lull_err *err)
{
	const struct lull_metric *metric;
	struct lull_bound_text parts;
	const char *arg;
	f64 limit = -1;

	err->code = LULL_OK;
	if (lull_bound_split(text, &parts, err))
		return -1;
	assert_int_equal(strlen(spec), parts.spec_len);
	assert_memory_equal(text + parts.spec_off, spec, parts.spec_len);
	assert_int_equal(lull_metric_find(spec, &metric, &arg, err), 0);
	return lull_bound_limit(&parts, metric, &limit, err) ? -1 : limit;
}

static void units_are_those_of_the_metric(void **state)
{
	struct lull_err err;

	(void)state;
	assert_float_equal(limit_of("step < 40 ms", "step", &err), 40e6, 0);
	assert_float_equal(limit_of(" step_time<=1.5s ", "step_time", &err), 1.5e9, 0);
	assert_float_equal(limit_of("kernel:attn < 250us", "kernel:attn", &err), 250e3, 1e-6);
	assert_float_equal(limit_of("memory < 2 GiB", "memory", &err), 2147483648.0, 0);
	assert_float_equal(limit_of("idle < 20 %", "idle", &err), 0.2, 1e-12);
	assert_float_equal(limit_of("launches < 120", "launches", &err), 120, 0);
	assert_float_equal(limit_of("energy < 500 mJ", "energy", &err), 0.5, 1e-12);
}

static void names_of_kernels_may_have_brackets(void **state)
{
	struct lull_err err;

	(void)state;
	assert_float_equal(limit_of("kernel:scan<int, 4> < 2 ms", "kernel:scan<int, 4>", &err), 2e6,
			   0);
}

static void says(const char *text, const char *spec, const char *expected)
{
	struct lull_err err;

	assert_float_equal(limit_of(text, spec, &err), -1, 0);
	assert_int_equal(err.code, LULL_E_USAGE);
	assert_string_equal(err.msg, expected);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	(void)state;
	says("step", "",
	     "'step': there is no <; write METRIC < NUMBER UNIT, such as 'step < 40 ms'");
	says("< 5 ms", "", "'< 5 ms': there is no metric before < (character 1)");
	says("step < ", "", "'step < ': there is no number after < (character 6)");
	says("step < fast", "step", "'step < fast': 'fast' (character 8) is not a number");
	says("step < -1 ms", "step", "'step < -1 ms': no value is below -1 ms (character 8)");
	says("step < 40", "step",
	     "'step < 40': the number has no unit (character 10); step_time takes ns, us, ms or s");
	says("step < 40 parsec", "step",
	     "'step < 40 parsec': 'parsec' (character 11) is not a unit here; step_time takes ns, "
	     "us, ms or s");
	says("launches < 4 ms", "launches",
	     "'launches < 4 ms': 'ms' (character 14) is not a unit here; launches takes no unit");
	says("idle < 4", "idle",
	     "'idle < 4': the number has no unit (character 9); idle_share takes %");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_those_of_the_metric),
		cmocka_unit_test(names_of_kernels_may_have_brackets),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
