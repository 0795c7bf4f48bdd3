/*
 * Sessions: a program that is launched once is recorded when asked, as often as asked, and each
 * report stands for itself.
 */
#include "support/profile.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/guest.h"

#define TOUR LULL_BUILD "/e2e/tour"

/* A name that no other session on this machine has. */
static char session[32];

/* Run "lull WORDS --session=OURS"; returns the exit status, `text` gets what it said. */
static int ask(char *text, const char *words)
{
	return test_profile_run(text, "%s --session=%s", words, session);
}

/* One line, and this in it. */
static void expect_line(const char *text, const char *part)
{
	const char *end = strchr(text, '\n');

	if (!strstr(text, part) || !end || end[1])
		fail_msg("expected one line with '%s', got '%s'", part, text);
}

/* What the program counts itself, while it runs. */
static struct guest_counts *counts;

static pid_t launch(const char *program)
{
	char text[8192];
	pid_t pid;

	counts = guest_counts_map(test_profile_path("counts"));
	assert_non_null(counts);
	setenv("TEST_COUNTS", test_profile_path("counts"), 1);
	snprintf(session, sizeof(session), "test-%d", getpid());
	pid = test_profile_launch("launch -q --session-new=%s %s >%s", session, program,
				  test_profile_path("stdout"));
	test_wait_for(ask(text, "status") == 0);
	expect_line(text, "ready, nothing recorded yet");
	return pid;
}

static unsigned n_events(void)
{
	char text[8192];
	unsigned n = 0;

	assert_int_equal(ask(text, "status"), 0);
	assert_non_null(strstr(text, "recording to "));
	assert_int_equal(sscanf(strstr(text, " s, "), " s, %u events", &n), 1);
	return n;
}

#define N_BEATS 20u

/* Until the program has beaten so often in this recording; and some of it is counted. */
static void wait_for_events(void)
{
	u64 n_before = counts->n_heard;

	test_wait_for(counts->n_heard >= n_before + N_BEATS);
	test_wait_for(n_events() > 0);
}

/* What every report of a session must hold by itself. */
static void expect_complete(const char *name, const char *command)
{
	struct lull_reader *r = test_profile_open(name);
	const struct lull_process_row *p = test_profile_process(r, 1);
	u64 n_beats = test_profile_marks(r, "beat", 0);

	assert_true(n_beats >= N_BEATS);
	assert_in_range(test_profile_ranges(r, "work"), n_beats - 1, n_beats + 1);
	assert_int_equal(lull_reader_n_dim(r, LULL_TABLE_process), 1);
	assert_string_equal(lull_reader_string(r, p->name, NULL), "tour");
	assert_non_null(strstr(lull_reader_string(r, p->exe, NULL), TOUR));
	assert_string_equal(test_profile_meta(r, "recording.command"), command);
	assert_non_null(test_profile_meta(r, "host.name"));
	assert_true(test_profile_rows(r, LULL_TABLE_module) > 0);
	assert_true(test_profile_rows(r, LULL_TABLE_usage) > 0);
	lull_reader_close(r);
}

static void one_run_gives_two_reports_that_are_complete(void **state)
{
	char text[8192], recorder[16];
	pid_t pid = launch(TOUR " beat never 0");

	(void)state;
	assert_int_equal(test_profile_run(text, "sessions"), 0);
	assert_non_null(strstr(text, session));
	/* Process ids are pasted into other commands. */
	snprintf(recorder, sizeof(recorder), "%d", (int)pid);
	assert_non_null(strstr(text, recorder));
	assert_int_equal(ask(text, "start -o %R/one"), 0);
	expect_line(text, "one.lull");
	assert_non_null(strstr(text, "lull: recording to "));
	assert_true(test_profile_exists("one.lull.part"));
	wait_for_events();
	assert_int_equal(ask(text, "stop"), 0);
	expect_line(text, "one.lull");
	assert_non_null(strstr(text, "lull: wrote "));
	assert_int_equal(ask(text, "status"), 0);
	expect_line(text, "stopped");
	assert_int_equal(ask(text, "start -o %R/two"), 0);
	wait_for_events();
	assert_int_equal(ask(text, "stop"), 0);
	assert_int_equal(ask(text, "shutdown"), 0);
	assert_int_equal(test_profile_wait(pid), 128 + SIGTERM);
	expect_complete("one.lull", TOUR " beat never 0");
	expect_complete("two.lull", TOUR " beat never 0");
	assert_int_equal(test_profile_count_files(".part"), 0);
	assert_true(test_profile_is_clean(pid));
}

static void a_cancelled_recording_leaves_nothing(void **state)
{
	char text[8192];
	pid_t pid = launch(TOUR " beat never 0");

	(void)state;
	assert_int_equal(ask(text, "start -o %R/gone"), 0);
	wait_for_events();
	assert_int_equal(ask(text, "cancel"), 0);
	expect_line(text, "discarded");
	assert_false(test_profile_exists("gone.lull"));
	assert_false(test_profile_exists("gone.lull.part"));
	/* The session is not harmed. */
	assert_int_equal(ask(text, "start -o %R/after"), 0);
	wait_for_events();
	assert_int_equal(ask(text, "stop"), 0);
	/* A shutdown drops what is being recorded. */
	assert_int_equal(ask(text, "start -o %R/dropped"), 0);
	assert_int_equal(ask(text, "shutdown --kill=sigkill"), 0);
	assert_int_equal(test_profile_wait(pid), 128 + SIGKILL);
	expect_complete("after.lull", TOUR " beat never 0");
	assert_false(test_profile_exists("dropped.lull"));
	assert_int_equal(test_profile_count_files(".part"), 0);
	assert_true(test_profile_is_clean(pid));
}

static void a_recording_that_is_on_at_the_end_is_finished(void **state)
{
	char text[8192];
	char program[256];
	pid_t pid;

	(void)state;
	snprintf(program, sizeof(program), TOUR " beat %s 6", test_profile_path("stop"));
	pid = launch(program);
	assert_int_equal(ask(text, "start -o %R/last"), 0);
	wait_for_events();
	test_profile_touch("stop");
	assert_int_equal(test_profile_wait(pid), 6);
	expect_complete("last.lull", program);
	assert_true(test_profile_is_clean(pid));
}

static void misuse_is_one_line_and_harms_nothing(void **state)
{
	char text[8192];
	pid_t pid = launch(TOUR " beat never 0");

	(void)state;
	assert_int_equal(ask(text, "stop"), 2);
	expect_line(text, "lull stop: no recording is running");
	assert_int_equal(ask(text, "cancel"), 2);
	expect_line(text, "lull cancel: no recording is running");
	assert_int_equal(ask(text, "start -o %R/twice"), 0);
	assert_int_equal(ask(text, "start -o %R/other"), 2);
	expect_line(text, "lull start: a recording is already running");
	assert_false(test_profile_exists("other.lull.part"));
	wait_for_events();
	assert_int_equal(ask(text, "stop"), 0);
	assert_int_equal(ask(text, "start -o %R/twice"), 2);
	expect_line(text, "twice.lull");
	assert_int_equal(ask(text, "start -o %R/no/such/folder/x"), 2);
	expect_line(text, "no/such/folder");
	assert_int_equal(ask(text, "stop now"), 2);
	expect_line(text, "unexpected argument 'now'");
	assert_int_equal(ask(text, "shutdown"), 0);
	assert_int_equal(test_profile_wait(pid), 128 + SIGTERM);
	expect_complete("twice.lull", TOUR " beat never 0");
	assert_true(test_profile_is_clean(pid));
}

static void a_session_that_is_not_there_is_one_line(void **state)
{
	static const char *const words[] = { "status", "start", "stop", "cancel", "shutdown" };
	char text[8192], expected[64];

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		assert_int_equal(
			test_profile_run(text, "%s --session=nobody-%d", words[i], getpid()), 1);
		snprintf(expected, sizeof(expected), "lull %s: no session 'nobody-%d'", words[i],
			 getpid());
		expect_line(text, expected);
	}
}

/* Other sessions may run on this machine, so this one looks at a /dev/shm of its own. */
static void without_any_session_the_next_step_is_said(void **state)
{
	char command[512], text[512];
	size_t n;
	FILE *pipe;

	(void)state;
	test_profile_need_namespace();
	snprintf(command, sizeof(command),
		 "unshare -m sh -c 'mount -t tmpfs none /dev/shm && TMPDIR=%s %s status; echo $?' "
		 "2>&1",
		 test_profile_path("."), test_profile_command());
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	pclose(pipe);
	assert_string_equal(text, "lull status: no session is running; start one with lull launch "
				  "-- PROGRAM\n1\n");
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
		cmocka_unit_test_setup_teardown(one_run_gives_two_reports_that_are_complete, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_cancelled_recording_leaves_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_recording_that_is_on_at_the_end_is_finished,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(misuse_is_one_line_and_harms_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_session_that_is_not_there_is_one_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_any_session_the_next_step_is_said, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
