/*
 * The recorder's memory does not depend on how long it records.
 */
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/guest.h"

#define TOUR LULL_BUILD "/e2e/tour"

#define LIMIT_KB  (256 * 1024)
#define GROWTH_KB (8 * 1024)

#define N_MARKS 1200000u

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

/* What the program counts itself, while it runs. */
static struct guest_counts *counts;

/* The largest while the program emits from so many marks to so many: it falls with each block. */
static long max_kb(pid_t pid, u64 from, u64 to)
{
	u64 end_ns = test_patience_end_ns();
	long most_kb = 0;

	while (counts->n_emitted < to) {
		long kb = counts->n_emitted < from ? 0 : status_kb(pid, "RssAnon");

		if (kb > most_kb)
			most_kb = kb;
		if (!test_patience_pause(end_ns))
			fail_msg("the program stands still at %llu marks",
				 (unsigned long long)counts->n_emitted);
	}
	assert_true(most_kb > 0);
	return most_kb;
}

static void memory_is_bounded_and_does_not_grow(void **state)
{
	long early_kb, late_kb, peak_kb;
	struct lull_reader *r;
	u64 n_marks;
	pid_t pid;

	(void)state;
	test_profile_begin();
	counts = guest_counts_map(test_profile_path("counts"));
	assert_non_null(counts);
	setenv("TEST_COUNTS", test_profile_path("counts"), 1);
	pid = test_profile_launch("profile -q -o %%R/r --osrt-threshold=0 " TOUR
				  " flood %%R/stop 0 >/dev/null");
	early_kb = max_kb(pid, N_MARKS / 4, N_MARKS / 2);
	late_kb = max_kb(pid, N_MARKS * 3 / 4, N_MARKS);
	peak_kb = status_kb(pid, "VmHWM");
	test_profile_touch("stop");
	assert_int_equal(test_profile_wait(pid), 0);
	r = test_profile_open("r.lull");
	print_message("%.1f M marks; %ld MiB until half of them, %ld MiB later, %ld MiB at most; "
		      "%s\n",
		      (f64)counts->n_emitted / 1e6, early_kb / 1024, late_kb / 1024, peak_kb / 1024,
		      test_profile_meta(r, "cost.collector_memory"));
	n_marks = test_profile_rows(r, LULL_TABLE_mark);
	assert_true(n_marks <= counts->n_emitted);
	assert_true(n_marks + test_profile_issue(r, "buffer_full") >= counts->n_emitted);
	assert_true(test_profile_rows(r, LULL_TABLE_oscall) > 0);
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
