/*
 * What a report says is true: shares of CPU time, complete stacks, lengths of waits, waits for
 * Python's lock.
 */
#include "support/profile.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUEST LULL_BUILD "/e2e/split_guest"

/* The counter that the agent reads, turned into ns, and CLOCK_MONOTONIC agree within this. */
#define CLOCKS_NS 50000

/* Names of a stack, outermost first, between semicolons. */
static void spell_stack(struct lull_reader *r, u32 stack, char *to, size_t room)
{
	size_t n_stacks, n_frames, n = 0;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n_stacks);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n_frames);
	const char *names[64];

	to[0] = '\0';
	for (u32 node = stack; node && node <= n_stacks && n < 64; node = stacks[node - 1].parent)
		names[n++] =
			lull_reader_string(r, frames[stacks[node - 1].frame - 1].function, NULL);
	while (n-- > 0)
		snprintf(to + strlen(to), room - strlen(to), "%s;", names[n]);
}

/* What the samples of a report say about split_guest. */
struct split {
	u64 seventy_ns, thirty_ns, n, n_to_main;
};

static struct split read_split(const char *name)
{
	struct lull_reader *r = test_profile_open(name);
	struct lull_sample_cols cols;
	struct lull_cursor c;
	struct split split = { 0 };
	char text[4096];
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_sample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			bool is_seventy, is_thirty;

			spell_stack(r, cols.stack[i], text, sizeof(text));
			is_seventy = strstr(text, "seventy;");
			is_thirty = strstr(text, "thirty;");
			if (!is_seventy && !is_thirty)
				continue;
			*(is_seventy ? &split.seventy_ns : &split.thirty_ns) += cols.weight_ns[i];
			split.n++;
			split.n_to_main += strstr(text, is_seventy ? "main;work;seventy;"
								   : "main;work;thirty;") != NULL;
		}
	}
	lull_cursor_release(&c);
	lull_reader_close(r);
	return split;
}

/* The share of seventy() in percent, as the program measured it. */
static f64 true_share_pct(const char *text)
{
	const char *line = strstr(text, "cpu ");
	f64 seventy_ns, thirty_ns;

	assert_non_null(line);
	assert_int_equal(sscanf(line, "cpu %lf %lf", &seventy_ns, &thirty_ns), 2);
	return 100.0 * seventy_ns / (seventy_ns + thirty_ns);
}

static void expect_split(const char *guest, const char *options, u64 least_pct)
{
	struct split s;
	f64 share_pct, true_pct;
	char text[8192];

	assert_int_equal(
		test_profile_run(
			text, "profile -q -f --sampling-frequency=1000 -o %%R/split %s %s cpu 1.5",
			options, guest),
		0);
	s = read_split("split.lull");
	true_pct = true_share_pct(text);
	share_pct = 100.0 * (f64)s.seventy_ns / (f64)(s.seventy_ns + s.thirty_ns);
	print_message("%s %s: %llu samples, seventy %.1f %% of %.1f %%, %.1f %% of the stacks "
		      "reach main\n",
		      guest, options, (unsigned long long)s.n, share_pct, true_pct,
		      100.0 * (f64)s.n_to_main / (f64)s.n);
	assert_true(s.n > 0);
	/*
	 * A share of few samples is less exact, and on a busy machine timers give fewer: five
	 * standard deviations.
	 */
	assert_true(fabs(share_pct - true_pct) < fmax(5, 230 / sqrt((f64)s.n)));
	assert_true(s.n_to_main >= s.n * least_pct / 100);
}

static void shares_and_stacks_are_right_with_frame_pointers(void **state)
{
	(void)state;
	expect_split(GUEST "_fp", "", 99);
}

static void shares_and_stacks_are_right_without_frame_pointers(void **state)
{
	(void)state;
	expect_split(GUEST, "", 99);
}

static void shares_and_stacks_are_right_when_perf_is_refused(void **state)
{
	(void)state;
	/* A quarter of the samples, so that one more or less weighs more. */
	expect_split(GUEST, "--sampler=timer", 97);
}

/* Rows of a table that a recorder which is at work has written so far. */
static u64 n_written(const char *part, u32 table)
{
	struct lull_reader *r;
	struct lull_err err;
	u64 n;

	if (!test_profile_exists(part) || lull_reader_open(&r, test_profile_path(part), &err) != 0)
		return 0;
	n = test_profile_rows(r, table);
	lull_reader_close(r);
	return n;
}

/* The recorder dies, the program goes on; what was sampled until then has its names after all. */
static void a_killed_recorder_leaves_named_stacks(void **state)
{
	struct split s;
	u64 n_before;
	pid_t pid;
	int rc;

	(void)state;
	pid = test_profile_launch("profile -q -f --sampling-frequency=1000 -o %%R/dead " GUEST
				  " cpu %%R/stop");
	test_wait_for(n_written("dead.lull.part", LULL_TABLE_sample) > 200);
	/* Samples are safe when a checkpoint follows them in the file. */
	n_before = n_written("dead.lull.part", LULL_TABLE_checkpoint);
	test_wait_for(n_written("dead.lull.part", LULL_TABLE_checkpoint) > n_before);
	kill(pid, SIGKILL);
	test_profile_wait(pid);
	rc = test_profile_run(NULL, "recover %%R/dead.lull.part");
	test_profile_touch("stop");
	assert_int_equal(rc, 0);
	s = read_split("dead.lull");
	print_message("%llu samples with names\n", (unsigned long long)s.n);
	assert_true(s.n > 0);
	assert_true(s.n_to_main >= s.n * 99 / 100);
}

/* One wait: its name, and the moments that the program noted. */
struct wait {
	char name[64];
	u64 before_ns, from_ns, to_ns, after_ns;
};

/* The longest call of this name between the two outer moments; false if there is none. */
static bool find_call(struct lull_reader *r, const struct wait *w, u64 *start_ns, u64 *end_ns)
{
	u64 epoch_ns = lull_reader_info(r)->epoch_ns;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	*start_ns = *end_ns = 0;
	lull_cursor_init(&c, r, LULL_TABLE_oscall, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			u64 at_ns = epoch_ns + cols.start_ns[i];

			if (strcmp(lull_reader_string(r, cols.name[i], NULL), w->name) != 0 ||
			    at_ns + CLOCKS_NS < w->before_ns || at_ns > w->after_ns ||
			    cols.dur_ns[i] <= *end_ns - *start_ns)
				continue;
			*start_ns = at_ns;
			*end_ns = at_ns + cols.dur_ns[i];
		}
	lull_cursor_release(&c);
	return *end_ns > 0;
}

/* It lies between the outer moments, and around the inner ones. */
static void expect_wait(struct lull_reader *r, const struct wait *w)
{
	u64 start_ns, end_ns;

	if (!find_call(r, w, &start_ns, &end_ns))
		fail_msg("no call of %s was recorded", w->name);
	print_message("%s: recorded %.3f of %.3f ms at most\n", w->name,
		      (f64)(end_ns - start_ns) / 1e6, (f64)(w->after_ns - w->before_ns) / 1e6);
	assert_true(start_ns + CLOCKS_NS >= w->before_ns && end_ns <= w->after_ns + CLOCKS_NS);
	assert_true(start_ns <= w->from_ns + CLOCKS_NS && end_ns + CLOCKS_NS >= w->to_ns);
}

static void waits_have_their_true_length(void **state)
{
	struct lull_reader *r;
	char text[8192];
	int n_seen = 0;

	(void)state;
	assert_int_equal(test_profile_run(text, "profile -q -f -o %%R/waits " GUEST " waits"), 0);
	r = test_profile_open("waits.lull");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long long at[4];
		struct wait w;

		assert_int_equal(sscanf(line, "%63s %llu %llu %llu %llu", w.name, &at[0], &at[1],
					&at[2], &at[3]),
				 5);
		w.before_ns = at[0];
		w.from_ns = at[1];
		w.to_ns = at[2];
		w.after_ns = at[3];
		expect_wait(r, &w);
		n_seen++;
	}
	assert_int_equal(n_seen, 3);
	lull_reader_close(r);
}

/*
 * What a thread did not spend computing it waited for the lock; unless it waited for a CPU, which
 * on a busy machine may be inside a wait for the lock or outside. So there are two bounds, and on
 * an idle machine they are one.
 */
struct bounds {
	f64 least_s, most_s;
};

static struct bounds expected_gil(char *text)
{
	struct bounds b = { 0, 0 };
	f64 begin_ns, end_ns, cpu_ns, delay_ns;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (sscanf(line, "thread %*d %lf %lf %lf %lf", &begin_ns, &end_ns, &cpu_ns,
			   &delay_ns) != 4)
			continue;
		b.least_s += (end_ns - begin_ns - cpu_ns - delay_ns) / 1e9;
		b.most_s += (end_ns - begin_ns) / 1e9;
	}
	return b;
}

static void gil_waits_add_up(void **state)
{
	struct lull_reader *r;
	struct lull_gil_wait_cols cols;
	struct lull_cursor c;
	char text[8192];
	struct bounds expected;
	f64 waited_s = 0;
	size_t n;

	(void)state;
	if (system("python3 -c pass 2>/dev/null") != 0)
		test_skip("there is no python3");
	if (access("/proc/thread-self/schedstat", R_OK) != 0)
		test_skip("the kernel does not tell how long threads wait for a CPU");
	assert_int_equal(
		test_profile_run(text,
				 "profile -q -f -o %%R/gil python3 test/e2e/guests/gil_guest.py"),
		0);
	expected = expected_gil(text);
	r = test_profile_open("gil.lull");
	lull_cursor_init(&c, r, LULL_TABLE_gil_wait, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			waited_s += (f64)cols.dur_ns[i] / 1e9;
	lull_cursor_release(&c);
	assert_true(test_profile_rows(r, LULL_TABLE_pysample) > 0);
	lull_reader_close(r);
	print_message("three threads waited %.3f s for the lock, expected %.3f to %.3f s\n",
		      waited_s, expected.least_s, expected.most_s);
	assert_true(expected.least_s > 0);
	/* On a virtual machine the host takes its part of the rest, and no clock tells. */
	assert_true(waited_s > expected.least_s * 0.5 && waited_s < expected.most_s * 1.05);
}

/* A thread waits for a queue while another one computes: samples tell them apart. */
static void python_threads_that_wait_are_idle(void **state)
{
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	struct lull_reader *r;
	u64 n_idle = 0, n_running = 0;
	char text[8192];
	size_t n;

	(void)state;
	if (system("python3 -c pass 2>/dev/null") != 0)
		test_skip("there is no python3");
	if (access("/proc/thread-self/schedstat", R_OK) != 0)
		test_skip("the kernel does not tell how long threads were on a CPU");
	assert_int_equal(test_profile_run(text, "profile -q -f -o %%R/idle python3 -c '\n"
						"import queue, threading, time\n"
						"q = queue.Queue()\n"
						"t = threading.Thread(target=q.get)\n"
						"t.start()\n"
						"end = time.process_time() + 0.5\n"
						"while time.process_time() < end: pass\n"
						"q.put(1)\n"
						"t.join()\n"
						"'"),
			 0);
	r = test_profile_open("idle.lull");
	lull_cursor_init(&c, r, LULL_TABLE_pysample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			assert_false(cols.is_idle[i] && cols.has_gil[i]);
			n_idle += cols.is_idle[i];
			n_running += cols.has_gil[i];
		}
	lull_cursor_release(&c);
	lull_reader_close(r);
	assert_true(n_idle > 2 && n_running > 2);
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
		cmocka_unit_test(shares_and_stacks_are_right_with_frame_pointers),
		cmocka_unit_test(shares_and_stacks_are_right_without_frame_pointers),
		cmocka_unit_test(shares_and_stacks_are_right_when_perf_is_refused),
		cmocka_unit_test(a_killed_recorder_leaves_named_stacks),
		cmocka_unit_test(waits_have_their_true_length),
		cmocka_unit_test(gil_waits_add_up),
		cmocka_unit_test(python_threads_that_wait_are_idle),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
