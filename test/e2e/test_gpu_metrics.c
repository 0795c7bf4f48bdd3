/*
 * State of devices over time, from a simulated NVML: what comes into the report, what is said when
 * something is refused, and that nobody stays behind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/profile.h"

#define NVML "LULL_NVML_PATH=" LULL_BUILD "/sim/libnvidia-ml.so.1 "

/* Values of a metric, of one source. */
struct values {
	u64 n;
	f64 min, max;
	u32 device; /* row of the last one */
};

static struct values read_values(struct lull_reader *r, const char *name, const char *source)
{
	struct lull_counter_cols c;
	struct lull_cursor cursor;
	struct values v = { 0, INFINITY, -INFINITY, 0 };
	size_t n, n_metrics;
	const struct lull_metric_row *rows = lull_reader_dim(r, LULL_TABLE_metric, &n_metrics);

	lull_cursor_init(&cursor, r, LULL_TABLE_counter, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &c)) > 0)
		for (size_t i = 0; i < n; i++) {
			const struct lull_metric_row *m = &rows[c.metric[i] - 1];

			if (strcmp(lull_reader_string(r, m->name, NULL), name) != 0 ||
			    strcmp(lull_reader_string(r, m->source, NULL), source) != 0)
				continue;
			v.n++;
			v.min = fmin(v.min, c.value[i]);
			v.max = fmax(v.max, c.value[i]);
			v.device = c.device[i];
		}
	lull_cursor_release(&cursor);
	return v;
}

/* Run "lull WORDS" with knobs in front; the report is NAME.lull. */
static struct lull_reader *record(const char *knobs, const char *name, const char *words)
{
	char command[1024], file[64];

	snprintf(command, sizeof(command), "%s%s%s profile -q -s none -o %s %s", NVML, knobs,
		 test_profile_command(), test_profile_path(name), words);
	assert_int_equal(system(command), 0);
	snprintf(file, sizeof(file), "%s.lull", name);
	return test_profile_open(file);
}

static void devices_are_looked_at_by_themselves(void **state)
{
	struct lull_reader *r = record("LULL_SIM_NVML_REASONS=4 ", "plain", "sleep 1.2");
	struct values power = read_values(r, "power", "nvml");
	struct values capped = read_values(r, "throttled_power", "nvml");
	struct values tensor = read_values(r, "tensor_active", "gpm");

	(void)state;
	assert_true(power.n >= 2);
	assert_true(power.min == 200 && power.max == 300);
	assert_true(capped.min == 100);
	assert_true(tensor.n >= 1 && tensor.min == 5 && tensor.max == 5);
	assert_true(read_values(r, "memory_used", "nvml").max == 1 << 30);
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 0);
	lull_reader_close(r);
}

static void links_come_from_nvml_without_gpm(void **state)
{
	struct lull_reader *r = record("LULL_SIM_NVML_LACKS=gpm,power LULL_SIM_NVML_DEVICES=2 ",
				       "links", "sleep 1");

	(void)state;
	assert_true(read_values(r, "pcie_rx", "nvml").max == 2e6);
	assert_int_equal(read_values(r, "power", "nvml").n, 0);
	assert_int_equal(read_values(r, "tensor_active", "gpm").n, 0);
	assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_device), 2);
	lull_reader_close(r);
}

static void one_device_of_two_can_be_chosen_and_counters_are_refused(void **state)
{
	struct lull_reader *r =
		record("LULL_SIM_NVML_DEVICES=2 LULL_CUPTI_PATH=/nowhere ", "chosen",
		       "--gpu-metrics-devices=1 --gpu-metrics-frequency=100 sleep 1");
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	(void)state;
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].device_id, 1);
	assert_true(read_values(r, "power", "nvml").n >= 1);
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 1);
	lull_reader_close(r);
}

static void a_library_that_refuses_is_told_only_if_asked_for(void **state)
{
	struct lull_reader *r = record("LULL_SIM_NVML_LACKS=init ", "silent", "true");

	(void)state;
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 0);
	lull_reader_close(r);
	/* Long enough for the sampler to say so. */
	r = record("LULL_SIM_NVML_LACKS=init ", "told", "--gpu-metrics=nvml sleep 1");
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 1);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_counter), 0);
	lull_reader_close(r);
}

static void nothing_is_measured_if_nobody_wants_it(void **state)
{
	struct lull_reader *r = record("", "none", "--gpu-metrics=none sleep 0.3");

	(void)state;
	assert_int_equal(test_profile_rows(r, LULL_TABLE_counter), 0);
	lull_reader_close(r);
}

/* A program whose child lives on: recorded to its end, and the sampler does not hold us up. */
static void the_sampler_is_no_part_of_the_program(void **state)
{
	struct lull_reader *r = record("", "orphan", "sh -c 'sleep 1.2 & exit 0'");
	struct values power = read_values(r, "power", "nvml");

	(void)state;
	assert_true(power.n >= 2);
	assert_int_equal(test_profile_issue(r, "still_running"), 0);
	lull_reader_close(r);
}

static void wrong_words_are_refused(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(text, "profile --gpu-metrics-devices=x true"), 2);
	assert_non_null(strstr(text, "'x' is not a number"));
	assert_int_equal(test_profile_run(text, "profile --gpu-metrics-frequency=5 true"), 2);
	assert_non_null(strstr(text, "between 10 and 200000 Hz"));
	assert_int_equal(test_profile_run(text, "profile --trace-library=:x true"), 2);
	assert_non_null(strstr(text, "LIBRARY:PATTERN"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_looked_at_by_themselves),
		cmocka_unit_test(links_come_from_nvml_without_gpm),
		cmocka_unit_test(one_device_of_two_can_be_chosen_and_counters_are_refused),
		cmocka_unit_test(a_library_that_refuses_is_told_only_if_asked_for),
		cmocka_unit_test(nothing_is_measured_if_nobody_wants_it),
		cmocka_unit_test(the_sampler_is_no_part_of_the_program),
		cmocka_unit_test(wrong_words_are_refused),
	};
	int failed;

	test_profile_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_profile_end();
	return failed;
}
