/*
 * Processes: each is in the report once, however it was started, with parent, name and end, and
 * what it emitted is under it.
 */
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/str.h"
#include "record/session/session.h"

#define TOUR   LULL_BUILD "/e2e/tour"
#define FAMILY LULL_BUILD "/e2e/family"
#define STATIC LULL_BUILD "/e2e/static_guest"

/* Without perf nothing but the agents tells about processes. */
#define NO_PERF "--python-sampling=false -s none --cpuctxsw=none "

/* A line of family. */
struct truth {
	char name[32];
	unsigned pid, parent, kind, code, n_programs;
};

static void expect_truth(struct lull_reader *r, const struct truth *t)
{
	const struct lull_process_row *last;
	u32 rows[8];
	size_t n = test_profile_processes(r, t->pid, rows);

	if (n != t->n_programs)
		fail_msg("%s has %zu rows, not %u", t->name, n, t->n_programs);
	for (size_t i = 0; i < n; i++) {
		const struct lull_process_row *p = test_profile_process(r, rows[i]);

		assert_int_equal(p->image, i);
		assert_int_equal(p->parent_pid, t->parent);
		if (i + 1 < n)
			assert_int_equal(p->exit_kind, 3);
	}
	last = test_profile_process(r, rows[n - 1]);
	if (last->exit_kind != t->kind || last->exit_code != t->code)
		fail_msg("%s ended with kind %u code %u, the report says %u %u", t->name, t->kind,
			 t->code, last->exit_kind, last->exit_code);
	if (test_profile_marks(r, t->name, rows[n - 1]) != 1 ||
	    test_profile_marks(r, t->name, 0) != 1)
		fail_msg("the mark of %s is not where it belongs", t->name);
	assert_int_equal(last->has_agent, 1);
}

static unsigned expect_truths(struct lull_reader *r, const char *text)
{
	unsigned n = 0, n_programs = 0;
	const char *line = text;
	struct truth t;

	for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (sscanf(line, "%31s %u %u %u %u %u", t.name, &t.pid, &t.parent, &t.kind, &t.code,
			   &t.n_programs) != 6)
			continue;
		expect_truth(r, &t);
		n_programs += t.n_programs;
		n++;
	}
	print_message("%u processes with %u programs\n", n, n_programs);
	return n_programs;
}

static void expect_all_kinds(const char *options)
{
	const struct lull_process_row *p;
	struct lull_reader *r;
	char text[8192];

	assert_int_equal(
		test_profile_run(text, "profile -q -f -o %%R/r %s " FAMILY " all " TOUR, options),
		5);
	r = test_profile_open("r.lull");
	/* And family itself. */
	assert_int_equal(expect_truths(r, text) + 1, lull_reader_n_dim(r, LULL_TABLE_process));
	assert_int_equal(expect_truths(r, text), 8);
	p = test_profile_process(r, 1);
	assert_string_equal(lull_reader_string(r, p->name, NULL), "family");
	assert_int_equal(p->exit_kind, 1);
	assert_int_equal(p->exit_code, 5);
	assert_int_equal(test_profile_marks(r, "chain_begin", 0), 1);
	assert_int_equal(test_profile_issue(r, "no_agent"), 0);
	lull_reader_close(r);
}

static void every_way_to_start_a_process_is_followed(void **state)
{
	(void)state;
	expect_all_kinds("");
}

static void without_perf_every_process_is_followed_too(void **state)
{
	(void)state;
	expect_all_kinds(NO_PERF);
}

static void a_daemon_is_waited_for_and_followed(void **state)
{
	struct lull_reader *r;
	char text[8192];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(test_profile_run(text,
						  "profile -q -f -o %%R/r --wait=all %s" FAMILY
						  " daemon gone",
						  i ? NO_PERF : ""),
				 5);
		r = test_profile_open("r.lull");
		assert_int_equal(expect_truths(r, text), 1);
		assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_process), 3);
		assert_int_equal(test_profile_issue(r, "still_running"), 0);
		lull_reader_close(r);
	}
}

/* Where nobody takes orphans in, it is a zombie from then on. */
static bool has_ended(unsigned pid)
{
	return !lull_is_alive(pid);
}

/* The daemon goes on until we say so, so the recorder returns only if it does not wait. */
static void a_daemon_may_be_left_behind(void **state)
{
	struct lull_reader *r;
	unsigned pid;
	u32 rows[8];
	FILE *said;

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r --wait=primary " FAMILY
						" daemon %%R/stop >%%R/said 2>&1 || exit $?; "
						":"),
			 5);
	said = fopen(test_profile_path("said"), "r");
	assert_non_null(said);
	assert_int_equal(fscanf(said, "daemon %u", &pid), 1);
	fclose(said);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_processes(r, pid, rows), 1);
	assert_int_equal(test_profile_process(r, rows[0])->exit_kind, 4);
	assert_int_equal(test_profile_issue(r, "still_running"), 1);
	assert_int_equal(test_profile_marks(r, "daemon_begin", rows[0]), 1);
	assert_int_equal(test_profile_marks(r, "daemon", 0), 0);
	lull_reader_close(r);
	test_profile_touch("stop");
	test_wait_for(has_ended(pid));
}

static void forks_of_python_are_followed(void **state)
{
	const struct lull_process_row *p;
	struct lull_reader *r;
	unsigned pid, parent;
	char text[8192];
	u32 rows[8];

	(void)state;
	if (system("python3 -c pass 2>/dev/null") != 0)
		test_skip("there is no python3");
	assert_int_equal(test_profile_run(text, "profile -q -f -o %%R/r python3 -c '\n"
						"import os, sys\n"
						"pid = os.fork()\n"
						"if pid == 0:\n"
						"    os._exit(6)\n"
						"os.waitpid(pid, 0)\n"
						"print(pid, os.getpid())\n"
						"sys.exit(8)'"),
			 8);
	assert_int_equal(sscanf(text, "%u %u", &pid, &parent), 2);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_processes(r, pid, rows), 1);
	p = test_profile_process(r, rows[0]);
	assert_int_equal(p->parent_pid, parent);
	assert_int_equal(p->exit_kind, 1);
	assert_int_equal(p->exit_code, 6);
	assert_true(test_profile_processes(r, parent, rows) >= 1);
	lull_reader_close(r);
}

/* Each leaf once, with its own number and its mark. */
static void expect_leaves(struct lull_reader *r, unsigned n_leaves)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(r, LULL_TABLE_process, &n);
	unsigned n_found = 0, n_marked = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(lull_reader_string(r, all[i].name, NULL), "tour") != 0)
			continue;
		n_found++;
		n_marked += test_profile_marks(r, "short", (u32)i + 1) == 1;
		assert_int_equal(all[i].exit_kind, 1);
		assert_int_equal(all[i].exit_code, 3);
		assert_int_equal(all[i].parent_pid, all[0].pid);
	}
	assert_int_equal(n_found, n_leaves);
	assert_int_equal(n_marked, n_leaves);
	assert_int_equal(test_profile_marks(r, "short", 0), n_leaves);
	assert_int_equal(test_profile_issue(r, "no_agent"), 0);
}

static void three_hundred_short_processes_are_all_there(void **state)
{
	struct lull_reader *r;

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r sh -c 'i=0; while [ $i "
						"-lt 300 ]; do " TOUR " leaf short 3; "
						"i=$((i+1)); done; exit 0'"),
			 0);
	r = test_profile_open("r.lull");
	expect_leaves(r, 300);
	lull_reader_close(r);
}

/* The only process of this name: without an agent, and counted as such. */
static void expect_uninstrumented(const char *name, unsigned code, const char *exe)
{
	struct lull_reader *r = test_profile_open("r.lull");
	size_t n, n_found = 0;
	const struct lull_process_row *all = lull_reader_dim(r, LULL_TABLE_process, &n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(lull_reader_string(r, all[i].name, NULL), name) != 0)
			continue;
		n_found++;
		assert_int_equal(all[i].has_agent, 0);
		assert_int_equal(all[i].exit_kind, 1);
		assert_int_equal(all[i].exit_code, code);
		assert_non_null(strstr(lull_reader_string(r, all[i].exe, NULL), exe));
	}
	assert_int_equal(n_found, 1);
	assert_int_equal(test_profile_issue(r, "no_agent"), 1);
	lull_reader_close(r);
}

static void need_perf(void)
{
	struct lull_reader *r = test_profile_open("r.lull");
	bool is_refused = test_profile_issue(r, "perf_refused") > 0;

	lull_reader_close(r);
	if (is_refused)
		test_skip("perf events are refused here");
}

static void static_programs_are_followed_and_flagged(void **state)
{
	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r " STATIC), 9);
	need_perf();
	expect_uninstrumented("static_guest", 9, "static_guest");
	assert_int_equal(
		test_profile_run(NULL, "profile -q -f -o %%R/r sh -c '" STATIC "; exit 4'"), 4);
	expect_uninstrumented("static_guest", 9, "static_guest");
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r sh -c 'exec " STATIC "'"),
			 9);
	expect_uninstrumented("static_guest", 9, "static_guest");
}

static void a_static_target_is_flagged_without_perf(void **state)
{
	struct lull_reader *r;

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r " NO_PERF STATIC), 9);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_issue(r, "no_agent"), 1);
	assert_int_equal(test_profile_process(r, 1)->exit_code, 9);
	lull_reader_close(r);
}

static void set_uid_programs_are_followed_and_flagged(void **state)
{
	struct lull_str command = LULL_STR_INIT;
	struct statvfs fs;
	int rc;

	(void)state;
	if (getuid() != 0)
		test_skip("making a set-uid program needs root");
	if (statvfs(test_profile_path("."), &fs) != 0 || fs.f_flag & (ST_NOSUID | ST_NOEXEC))
		test_skip("the folder of the tests takes no set-uid programs");
	lull_str_addf(&command, "chmod 755 %s; cp " TOUR " %s && chown 65534 %s && chmod 4755 %s",
		      test_profile_path("."), test_profile_path("setuid"),
		      test_profile_path("setuid"), test_profile_path("setuid"));
	rc = system(command.at);
	lull_str_release(&command);
	if (rc != 0)
		test_skip("making a set-uid program is refused");
	assert_int_equal(test_profile_run(NULL, "profile -q -f -o %%R/r sh -c '%%R/setuid leaf x "
						"7; exit 1'"),
			 1);
	need_perf();
	/* The kernel tells no more than the name: it takes its events off such a program. */
	expect_uninstrumented("setuid", 7, "");
}

static int set_up(void **state)
{
	(void)state;
	test_profile_begin();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	test_profile_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_start_a_process_is_followed),
		cmocka_unit_test(without_perf_every_process_is_followed_too),
		cmocka_unit_test(a_daemon_is_waited_for_and_followed),
		cmocka_unit_test(a_daemon_may_be_left_behind),
		cmocka_unit_test(forks_of_python_are_followed),
		cmocka_unit_test(three_hundred_short_processes_are_all_there),
		cmocka_unit_test(static_programs_are_followed_and_flagged),
		cmocka_unit_test(a_static_target_is_flagged_without_perf),
		cmocka_unit_test(set_uid_programs_are_followed_and_flagged),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
