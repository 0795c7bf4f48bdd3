/*
 * The recorder's memory does not depend on how long it records.
 */
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOUR LULL_BUILD "/e2e/tour"

#define LIMIT_KB  (256 * 1024)
#define GROWTH_KB (8 * 1024)

/* A line of /proc/PID/status, in KiB. */
static long status_kb(pid_t pid, const char *key)
{
	char path[64], line[256];
	long kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtol(line + strlen(key) + 1, NULL, 10);
	fclose(file);
	assert_true(kb > 0);
	return kb;
}

/* The largest in a second: it falls whenever a block is written. */
static long max_kb(pid_t pid)
{
	long most_kb = 0;

	for (int i = 0; i < 20; i++) {
		long kb = status_kb(pid, "RssAnon");

		if (kb > most_kb)
			most_kb = kb;
		usleep(50000);
	}
	return most_kb;
}

static void memory_is_bounded_and_does_not_grow(void **state)
{
	long early_kb, late_kb, peak_kb;
	struct lull_reader *r;
	pid_t pid;

	(void)state;
	test_profile_begin();
	pid = test_profile_launch("profile -q -o %%R/r --osrt-threshold=0 " TOUR
				  " flood 10000 0 >/dev/null");
	usleep(3500000);
	early_kb = max_kb(pid);
	usleep(4000000);
	late_kb = max_kb(pid);
	peak_kb = status_kb(pid, "VmHWM");
	assert_int_equal(test_profile_wait(pid), 0);
	r = test_profile_open("r.lull");
	print_message("%.1f M marks; %ld MiB after 4 s, %ld MiB after 9 s, %ld MiB at most; %s\n",
		      (f64)test_profile_rows(r, LULL_TABLE_mark) / 1e6, early_kb / 1024,
		      late_kb / 1024, peak_kb / 1024,
		      test_profile_meta(r, "cost.collector_memory"));
	assert_true(test_profile_rows(r, LULL_TABLE_mark) > 500000);
	assert_true(test_profile_rows(r, LULL_TABLE_oscall) > 10000);
	assert_true(atol(test_profile_meta(r, "cost.collector_memory")) <= LIMIT_KB / 1024);
	lull_reader_close(r);
	test_profile_end();
	assert_true(peak_kb <= LIMIT_KB);
	assert_true(late_kb <= early_kb + GROWTH_KB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_bounded_and_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
