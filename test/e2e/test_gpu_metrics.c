/*
 * State of devices over time, from a simulated NVML: what comes into the report, what is said when
 * something is refused, and that nobody stays behind.
 */
#include <dirent.h>
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

/* A program that runs until there is a file. */
#define RUN LULL_BUILD "/e2e/tour beat %s 0 >/dev/null"

/* Start "lull WORDS" with knobs in front; the report is NAME.lull. */
static pid_t launch(const char *knobs, const char *name, const char *words)
{
	char command[2048], program[256];
	pid_t pid;

	snprintf(program, sizeof(program), words, test_profile_path("stop"));
	snprintf(command, sizeof(command), "exec env " NVML "%s%s profile -q -s none -o %s %s",
		 knobs, test_profile_command(), test_profile_path(name), program);
	unlink(test_profile_path("stop"));
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	return pid;
}

/* Let the program end, and open the report. */
static struct lull_reader *finish(pid_t pid, const char *name)
{
	char file[64];

	test_profile_touch("stop");
	assert_int_equal(test_profile_wait(pid), 0);
	snprintf(file, sizeof(file), "%s.lull", name);
	return test_profile_open(file);
}

/* Whether the report, as far as it is written by now, has all that the test needs. */
typedef bool enough_fn(struct lull_reader *r);

static bool has_enough(const char *name, enough_fn *is_enough)
{
	struct lull_reader *r;
	struct lull_err err;
	char part[64];
	bool is;

	snprintf(part, sizeof(part), "%s.lull.part", name);
	if (!test_profile_exists(part) || lull_reader_open(&r, test_profile_path(part), &err) != 0)
		return false;
	is = is_enough(r);
	lull_reader_close(r);
	return is;
}

/* Record until there is enough of it. */
static struct lull_reader *record(const char *knobs, const char *name, const char *words,
				  enough_fn *is_enough)
{
	pid_t pid = launch(knobs, name, words);

	test_wait_for(has_enough(name, is_enough));
	return finish(pid, name);
}

static bool has_power(struct lull_reader *r)
{
	return read_values(r, "power", "nvml").n >= 2;
}

static bool has_power_and_tensor(struct lull_reader *r)
{
	return has_power(r) && read_values(r, "tensor_active", "gpm").n >= 1;
}

static void devices_are_looked_at_by_themselves(void **state)
{
	struct lull_reader *r =
		record("LULL_SIM_NVML_REASONS=4 ", "plain", RUN, has_power_and_tensor);
	struct values power = read_values(r, "power", "nvml");
	struct values capped = read_values(r, "throttled_power", "nvml");
	struct values tensor = read_values(r, "tensor_active", "gpm");

	(void)state;
	assert_true(power.min == 200 && power.max == 300);
	assert_true(read_values(r, "power_limit", "nvml").min == 700);
	assert_true(capped.min == 100);
	assert_true(tensor.min == 5 && tensor.max == 5);
	assert_true(read_values(r, "memory_used", "nvml").max == 1 << 30);
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 0);
	lull_reader_close(r);
}

static bool has_links_of_two(struct lull_reader *r)
{
	return read_values(r, "pcie_rx", "nvml").n > 0 &&
	       lull_reader_n_dim(r, LULL_TABLE_device) == 2;
}

static void links_come_from_nvml_without_gpm(void **state)
{
	struct lull_reader *r = record("LULL_SIM_NVML_LACKS=gpm,power LULL_SIM_NVML_DEVICES=2 ",
				       "links", RUN, has_links_of_two);

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
		       "--gpu-metrics-devices=1 --gpu-metrics-frequency=100 " RUN, has_power);
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	(void)state;
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].device_id, 1);
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 1);
	lull_reader_close(r);
}

/* Whether the recorder has a sampler of devices that lives. */
static bool has_sampler(pid_t recorder)
{
	DIR *dir = opendir("/proc");
	bool is_there = false;
	struct dirent *e;

	assert_non_null(dir);
	while (!is_there && (e = readdir(dir))) {
		char path[300], name[32], state;
		int parent;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		file = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		is_there = fscanf(file, "%*d (%31[^)]) %c %d", name, &state, &parent) == 3 &&
			   parent == recorder && state != 'Z' && strcmp(name, "lull-gpu") == 0;
		fclose(file);
	}
	closedir(dir);
	return is_there;
}

static bool has_begun(struct lull_reader *r)
{
	return lull_reader_n_dim(r, LULL_TABLE_process) > 0;
}

static void a_library_that_refuses_is_told_only_if_asked_for(void **state)
{
	struct lull_reader *r;
	pid_t pid;

	(void)state;
	pid = launch("LULL_SIM_NVML_LACKS=init ", "silent", "true");
	r = finish(pid, "silent");
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 0);
	lull_reader_close(r);
	/* The sampler, which was there before the program, says so and ends. */
	pid = launch("LULL_SIM_NVML_LACKS=init ", "told", "--gpu-metrics=nvml " RUN);
	test_wait_for(has_enough("told", has_begun) && !has_sampler(pid));
	r = finish(pid, "told");
	assert_int_equal(test_profile_issue(r, "gpu_metrics_refused"), 1);
	assert_int_equal(test_profile_rows(r, LULL_TABLE_counter), 0);
	lull_reader_close(r);
}

static void nothing_is_measured_if_nobody_wants_it(void **state)
{
	struct lull_reader *r = record("", "none", "--gpu-metrics=none " RUN, has_begun);

	(void)state;
	assert_int_equal(test_profile_rows(r, LULL_TABLE_counter), 0);
	lull_reader_close(r);
}

/* A program whose child lives on: recorded to its end, and the sampler does not hold us up. */
static void the_sampler_is_no_part_of_the_program(void **state)
{
	struct lull_reader *r = record("", "orphan", "sh -c '" RUN " & exit 0'", has_power);

	(void)state;
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
