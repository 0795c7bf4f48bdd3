/*
 * When is recorded, under which name, and what the program notices of it: nothing.
 */
#include "support/profile.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "support/guest.h"

#define TOUR LULL_BUILD "/e2e/tour"

/* Nothing that costs time and is not looked at here. */
#define LEAN "--python-sampling=false -s none --cpuctxsw=none "

static f64 seconds_of(struct lull_reader *r)
{
	const char *text = test_profile_meta(r, "recording.duration");

	assert_non_null(text);
	return strtod(text, NULL);
}

/* All of a file of the folder. */
static void read_all(const char *name, struct lull_str *to)
{
	FILE *file = fopen(test_profile_path(name), "r");
	char bytes[65536];
	size_t n;

	assert_non_null(file);
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		lull_str_add(to, bytes, n);
	fclose(file);
}

/* What the program counts itself, also while it runs. */
static struct guest_counts *counts;

static void count(void)
{
	counts = guest_counts_map(test_profile_path("counts"));
	assert_non_null(counts);
	setenv("TEST_COUNTS", test_profile_path("counts"), 1);
}

/* All beats in the midst of the recording are there, and no others than the program emitted. */
static void expect_beats(struct lull_reader *r)
{
	u64 n = test_profile_marks(r, "beat", 0);

	print_message("%llu beats, %llu of them certainly recorded, %llu are there\n",
		      (unsigned long long)counts->n_emitted, (unsigned long long)counts->n_heard,
		      (unsigned long long)n);
	assert_true(n >= counts->n_heard && n <= counts->n_emitted + 1);
}

/* The program ends when enough of it was recorded, so it ends at all only if that begins. */
static void a_delay_leaves_the_beginning_out(void **state)
{
	u64 start_ns = lull_now_ns();
	struct lull_reader *r;

	(void)state;
	count();
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "--delay 0.5 -o %%R/r " TOUR
						" beat recorded 4"),
			 4);
	r = test_profile_open("r.lull");
	assert_true(lull_reader_info(r)->epoch_ns >= start_ns + LULL_NS_PER_S / 2);
	expect_beats(r);
	/* One may have been on its way when the recording began. */
	assert_in_range(test_profile_marks(r, "beat", 0), counts->n_heard, counts->n_heard + 1);
	assert_int_equal(test_profile_marks(r, "end", 0), 1);
	lull_reader_close(r);
}

/* The program does not end by itself. */
static void a_duration_ends_recording_and_program(void **state)
{
	struct lull_reader *r;

	(void)state;
	count();
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "--duration 0.4 -o %%R/r " TOUR
						" beat never 0"),
			 128 + SIGTERM);
	r = test_profile_open("r.lull");
	assert_true(seconds_of(r) >= 0.4);
	expect_beats(r);
	assert_int_equal(test_profile_marks(r, "end", 0), 0);
	lull_reader_close(r);
	assert_int_equal(test_profile_run(NULL,
					  "profile -q " LEAN "-d 0.2 --kill=sigkill -o %%R/k " TOUR
					  " beat never 0"),
			 128 + SIGKILL);
}

static void without_a_kill_the_program_goes_on(void **state)
{
	struct lull_reader *r;
	char text[8192];

	(void)state;
	count();
	assert_int_equal(test_profile_run(text, "profile -q " LEAN
						"--duration 0.2 --kill=none -o %%R/r " TOUR
						" beat over 6"),
			 6);
	assert_string_equal(text, "beat is over\n");
	r = test_profile_open("r.lull");
	assert_true(seconds_of(r) >= 0.2);
	expect_beats(r);
	assert_int_equal(test_profile_marks(r, "end", 0), 0);
	lull_reader_close(r);
}

/* One take and what is in it, nothing else. */
static void expect_take(const char *name)
{
	struct lull_reader *r = test_profile_open(name);

	assert_int_equal(test_profile_ranges(r, "take"), 1);
	assert_int_equal(test_profile_marks(r, "inside", 0), 1);
	assert_int_equal(test_profile_marks(r, "outside", 0), 0);
	lull_reader_close(r);
}

#define TAKES "profile -q " LEAN "-c nvtx -p take -o %%R/take%%n "

static void a_capture_range_is_all_there_is(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(
		test_profile_run(text, TAKES "--capture-range-end=stop " TOUR " takes 3 5"), 5);
	assert_string_equal(text, "takes are over\n");
	assert_int_equal(test_profile_count_files(".lull"), 1);
	expect_take("take1.lull");
}

static void a_capture_range_can_end_the_session(void **state)
{
	char text[8192];

	(void)state;
	/* Without --kill the program is left to its own end. */
	assert_int_equal(test_profile_run(text, TAKES TOUR " takes 3 5"), 5);
	assert_string_equal(text, "takes are over\n");
	assert_int_equal(test_profile_count_files(".lull"), 1);
	expect_take("take1.lull");
	assert_int_equal(test_profile_run(text, TAKES "--capture-range-end=stop-shutdown "
						      "--kill=sigterm " TOUR " takes 0 5"),
			 128 + SIGTERM);
	assert_int_equal(test_profile_count_files(".lull"), 2);
	expect_take("take2.lull");
}

static void capture_ranges_repeat_as_often_as_asked(void **state)
{
	(void)state;
	assert_int_equal(
		test_profile_run(NULL, TAKES "--capture-range-end=repeat:3 " TOUR " takes 5 5"), 5);
	assert_int_equal(test_profile_count_files(".lull"), 3);
	for (int i = 1; i <= 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "take%d.lull", i);
		expect_take(name);
	}
	assert_int_equal(test_profile_count_files(".part"), 0);
}

static void capture_ranges_without_a_count_are_all_taken(void **state)
{
	(void)state;
	assert_int_equal(
		test_profile_run(NULL, TAKES "--capture-range-end=repeat " TOUR " takes 4 5"), 5);
	assert_int_equal(test_profile_count_files(".lull"), 4);
	expect_take("take4.lull");
}

static void after_the_last_repeat_the_session_ends(void **state)
{
	(void)state;
	assert_int_equal(test_profile_run(NULL, TAKES "--capture-range-end=repeat-shutdown:2 "
						      "--kill=sigterm " TOUR " takes 0 5"),
			 128 + SIGTERM);
	assert_int_equal(test_profile_count_files(".lull"), 2);
	expect_take("take1.lull");
	expect_take("take2.lull");
}

static void a_capture_range_belongs_to_its_domain(void **state)
{
	struct lull_reader *r;

	(void)state;
	assert_int_equal(test_profile_run(NULL,
					  "profile -q " LEAN "-c nvtx -p take@right -o %%R/right "
					  "--capture-range-end=stop " TOUR " domains 2 5"),
			 5);
	r = test_profile_open("right.lull");
	assert_int_equal(test_profile_ranges(r, "take"), 1);
	assert_int_equal(test_profile_marks(r, "inside right", 0), 1);
	assert_int_equal(test_profile_marks(r, "inside left", 0), 0);
	lull_reader_close(r);
	/* The default domain has no such range; any domain has. */
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-c nvtx -p take -o %%R/none "
						"--capture-range-end=stop " TOUR " domains 1 5"),
			 5);
	assert_false(test_profile_exists("none.lull"));
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-c nvtx -p 'take@*' -o %%R/any "
						"--capture-range-end=repeat:2 -o %%R/any%%n " TOUR
						" domains 1 5"),
			 5);
	assert_true(test_profile_exists("any1.lull") && test_profile_exists("any2.lull"));
}

/* Who is left goes on until we say so, so the recorder returns only if it does not wait. */
static void the_primary_is_enough_if_that_is_asked(void **state)
{
	struct lull_reader *r;
	pid_t pid;

	(void)state;
	count();
	pid = test_profile_launch("profile -q " LEAN "--wait=primary -o %%R/r sh -c '" TOUR
				  " beat %%R/stop 0 >/dev/null 2>&1 & until [ -e %%R/go ]; do "
				  "sleep 0.02; done; exit 7' </dev/null");
	test_wait_for(counts->n_heard > 0);
	test_profile_touch("go");
	assert_int_equal(test_profile_wait(pid), 7);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_issue(r, "still_running"), 1);
	expect_beats(r);
	assert_int_equal(test_profile_marks(r, "end", 0), 0);
	lull_reader_close(r);
	test_profile_touch("stop");
	test_wait_for(counts->is_done);
}

/* Who is left emits its last mark when the program itself is gone. */
static void everything_is_waited_for_otherwise(void **state)
{
	struct lull_reader *r;

	(void)state;
	count();
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-o %%R/r sh -c '" TOUR
						" beat gone:$$ 0 >/dev/null 2>&1 & exit 7'"),
			 7);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_issue(r, "still_running"), 0);
	assert_int_equal(test_profile_marks(r, "beat", 0), counts->n_emitted);
	assert_int_equal(test_profile_marks(r, "end", 0), 1);
	lull_reader_close(r);
}

/* Whether the program was gone before the recording ended; then its mark is there. */
static bool has_outlasted(unsigned seconds)
{
	struct lull_reader *r;
	bool is_gone;

	assert_int_equal(test_profile_run(NULL,
					  "profile -q -f " LEAN "--stop-on-exit=false --kill=none "
					  "--duration %u -o %%R/r " TOUR " leaf early 3",
					  seconds),
			 3);
	r = test_profile_open("r.lull");
	assert_true(seconds_of(r) >= seconds);
	is_gone = test_profile_process(r, 1)->end_ns != 0;
	if (is_gone) {
		assert_true((f64)test_profile_process(r, 1)->end_ns / 1e9 <= seconds_of(r));
		assert_int_equal(test_profile_marks(r, "early", 0), 1);
	}
	lull_reader_close(r);
	return is_gone;
}

static void a_recording_can_outlast_the_program(void **state)
{
	unsigned seconds = 1;
	char text[8192];

	(void)state;
	/* A busy machine may take longer to start the program. */
	while (!has_outlasted(seconds) && seconds < test_patience_s() / 2)
		seconds *= 2;
	assert_true(seconds < test_patience_s() / 2);
	assert_int_equal(test_profile_run(text, "profile --stop-on-exit=false -o %%R/s true"), 2);
	assert_non_null(strstr(text, "--stop-on-exit=false needs a --duration"));
}

static void the_environment_is_what_was_asked_for(void **state)
{
	char text[8192];

	(void)state;
	setenv("FROM_OUTSIDE", "outside", 1);
	assert_int_equal(test_profile_run(text, "profile -q " LEAN "-e ONE=1,TWO=2 -e THREE=3 "
						"-o %%R/a sh -c 'echo $ONE $TWO $THREE "
						"$FROM_OUTSIDE'"),
			 0);
	assert_string_equal(text, "1 2 3 outside\n");
	assert_int_equal(test_profile_run(text, "profile -q " LEAN "-n false -e ONE=1 -o %%R/b "
						"/bin/sh -c 'echo $ONE $FROM_OUTSIDE'"),
			 0);
	assert_string_equal(text, "1\n");
	unsetenv("FROM_OUTSIDE");
	assert_int_equal(test_profile_run(text, "profile -e ONE -o %%R/c true"), 2);
	assert_non_null(strstr(text, "--env-var: 'ONE' is not NAME=VALUE"));
}

static void names_of_reports_follow_their_pattern(void **state)
{
	char host[64], name[128], text[8192];
	int pid;

	(void)state;
	gethostname(host, sizeof(host));
	setenv("RANK", "12", 1);
	assert_int_equal(test_profile_run(text,
					  "profile -q " LEAN "-o '%%R/%%p-%%h-%%q{RANK}-%%%%-%%n' "
					  "sh -c 'echo $$'"),
			 0);
	assert_int_equal(sscanf(text, "%d", &pid), 1);
	snprintf(name, sizeof(name), "%d-%s-12-%%-1.lull", pid, host);
	if (!test_profile_exists(name))
		fail_msg("there is no %s", name);
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-o %%R/n%%n true"), 0);
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-o %%R/n%%n.lull true"), 0);
	assert_true(test_profile_exists("n1.lull") && test_profile_exists("n2.lull"));
	unsetenv("RANK");
	assert_int_equal(test_profile_run(text, "profile -q -o '%%R/x%%q{RANK}' touch %%R/ran"), 2);
	assert_non_null(strstr(text, "RANK"));
	assert_int_equal(test_profile_run(text, "profile -q -o '%%R/x%%z' touch %%R/ran"), 2);
	assert_false(test_profile_exists("ran"));
}

static void a_report_is_not_overwritten_unasked(void **state)
{
	struct stat before, after;
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-o %%R/r true"), 0);
	assert_int_equal(stat(test_profile_path("r.lull"), &before), 0);
	assert_int_equal(test_profile_run(text, "profile -q " LEAN "-o %%R/r touch %%R/ran"), 1);
	assert_non_null(strstr(text, "r.lull"));
	assert_int_equal(stat(test_profile_path("r.lull"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_false(test_profile_exists("ran"));
	assert_false(test_profile_exists("r.lull.part"));
	assert_int_equal(test_profile_run(text, "profile -q " LEAN "-f -o %%R/r touch %%R/ran"), 0);
	assert_true(test_profile_exists("ran"));
	lull_reader_close(test_profile_open("r.lull"));
}

static void secrets_are_nowhere_in_the_report(void **state)
{
	static const char *const secrets[] = { "hunter2secret", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012",
					       "wordsofmouth", "AKIAIOSFODNN7EXAMPLE" };
	struct lull_str all = LULL_STR_INIT;

	(void)state;
	setenv("DB_PASSWORD", secrets[0], 1);
	setenv("INNOCENT", secrets[1], 1);
	setenv("VISIBLE_SETTING", "seen-and-fine", 1);
	assert_int_equal(test_profile_run(NULL,
					  "profile -q -o %%R/r --export jsonlines -e "
					  "AWS_KEY=%s sh -c 'sh -c \"exit 0\" x "
					  "--api-token=%s --password %s; true' y "
					  "--secret %s",
					  secrets[3], secrets[2], secrets[2], secrets[0]),
			 0);
	read_all("r.jsonl", &all);
	assert_true(all.len > 1000);
	assert_non_null(strstr(all.at, "seen-and-fine"));
	assert_non_null(strstr(all.at, "(hidden)"));
	for (size_t i = 0; i < LULL_COUNT_OF(secrets); i++)
		if (strstr(all.at, secrets[i]))
			fail_msg("the report holds '%s'", secrets[i]);
	lull_str_release(&all);
	assert_int_equal(test_profile_run(NULL, "profile -q -o %%R/d --export jsonlines "
						"--discard-environment=true true"),
			 0);
	read_all("d.jsonl", &all);
	assert_null(strstr(all.at, "VISIBLE_SETTING"));
	lull_str_release(&all);
	unsetenv("DB_PASSWORD");
	unsetenv("INNOCENT");
	unsetenv("VISIBLE_SETTING");
}

static void summaries_and_exports_follow_the_recording(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(text, "profile -q " LEAN
						"--stats --export jsonlines,csv -o %%R/r " TOUR
						" takes 2 5"),
			 5);
	assert_non_null(strstr(text, "nvtx_sum"));
	assert_non_null(strstr(text, "take"));
	assert_true(test_profile_exists("r.jsonl"));
	/* Who may replace the report may replace what is made from it. */
	assert_int_equal(
		test_profile_run(text, "profile -q " LEAN "-f --export jsonlines -o %%R/r true"),
		0);
	assert_int_equal(test_profile_run(text, "profile -q " LEAN "--export nonsense -o %%R/s "
						"touch %%R/ran"),
			 2);
	assert_non_null(strstr(text, "nonsense"));
	assert_false(test_profile_exists("ran"));
}

/* Bytes of every value, some without a newline at the end; and something on standard error. */
#define TALK \
	"sh -c 'printf \"one\\\\0two\\\\377\\\\n\"; cat /bin/true; echo aside >&2; cat; exit 9'"

static void expect_same(const char *name)
{
	struct lull_str plain = LULL_STR_INIT, recorded = LULL_STR_INIT;

	read_all("plain", &plain);
	read_all(name, &recorded);
	assert_true(plain.len > 1000);
	assert_int_equal(plain.len, recorded.len);
	assert_memory_equal(plain.at, recorded.at, plain.len);
	lull_str_release(&plain);
	lull_str_release(&recorded);
}

static void input_and_output_are_the_programs_own(void **state)
{
	struct lull_str words = LULL_STR_INIT, errors = LULL_STR_INIT;

	(void)state;
	lull_str_addf(&words, "seq 100 >%s; " TALK " >%s 2>/dev/null <%s", test_profile_path("in"),
		      test_profile_path("plain"), test_profile_path("in"));
	assert_int_equal(system(words.at) >> 8, 9);
	assert_int_equal(test_profile_run(NULL, "profile -q -o %%R/q " TALK " >%%R/quiet "
						"2>%%R/quiet.err <%%R/in || exit $?; :"),
			 9);
	expect_same("quiet");
	assert_int_equal(test_profile_run(NULL, "profile -o %%R/l " TALK " >%%R/loud "
						"2>%%R/loud.err <%%R/in || exit $?; :"),
			 9);
	expect_same("loud");
	read_all("quiet.err", &errors);
	assert_string_equal(errors.at, "aside\n");
	lull_str_release(&errors);
	read_all("loud.err", &errors);
	assert_non_null(strstr(errors.at, "aside\n"));
	assert_non_null(strstr(errors.at, "l.lull"));
	lull_str_release(&errors);
	lull_str_release(&words);
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
	unsetenv("TEST_COUNTS");
	test_profile_end();
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_delay_leaves_the_beginning_out),
		TEST(a_duration_ends_recording_and_program),
		TEST(without_a_kill_the_program_goes_on),
		TEST(a_capture_range_is_all_there_is),
		TEST(a_capture_range_can_end_the_session),
		TEST(capture_ranges_repeat_as_often_as_asked),
		TEST(capture_ranges_without_a_count_are_all_taken),
		TEST(after_the_last_repeat_the_session_ends),
		TEST(a_capture_range_belongs_to_its_domain),
		TEST(the_primary_is_enough_if_that_is_asked),
		TEST(everything_is_waited_for_otherwise),
		TEST(a_recording_can_outlast_the_program),
		TEST(the_environment_is_what_was_asked_for),
		TEST(names_of_reports_follow_their_pattern),
		TEST(a_report_is_not_overwritten_unasked),
		TEST(secrets_are_nowhere_in_the_report),
		TEST(summaries_and_exports_follow_the_recording),
		TEST(input_and_output_are_the_programs_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
