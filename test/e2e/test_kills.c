/*
 * Nothing is lost: a program that numbers its own marks is ended in every way there is, at random
 * moments, and so is the recorder; every mark that returned is in the report, exactly once.
 *
 * KILLS in the environment sets how many endings are tried (default 200).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "support/profile.h"
#include "trace/reader.h"

#define N_THREADS 16

/* Every way to end, and the status `lull profile` must return for it. */
static const struct ending {
	const char *how;
	int status;
} endings[] = {
	{ "exit", 3 },
	{ "_exit", 3 },
	{ "quick_exit", 3 },
	{ "abort", 128 + SIGABRT },
	{ "segv", 128 + SIGSEGV },
	{ "term", 128 + SIGTERM },
	{ "kill", 128 + SIGKILL },
	{ "exec", 3 },
	{ "pthread_exit", 3 },
	{ "orphan", 0 }, /* the recorder is killed instead */
};

static char folder[] = "/tmp/lull-kills-XXXXXX";
static char report[64], part[72], counts_path[64];

/* Nobody writes there: its other end is open as long as the recorder or the program lives. */
static int life_fd = -1;

static void name_report(const char *name)
{
	snprintf(report, sizeof(report), "%s/%s", folder, name);
	snprintf(part, sizeof(part), "%s.part", report);
}

/* What begins a recording, as --capture-range takes it. */
static const char *capture = "none";

/* Start `lull profile` on the program; returns the recorder's pid. */
static pid_t start(const char *how, const char *ms, const char *pace)
{
	char n_threads[8];
	int life[2];
	pid_t pid;

	snprintf(n_threads, sizeof(n_threads), "%d", N_THREADS);
	unlink(report);
	unlink(part);
	unlink(counts_path);
	assert_int_equal(pipe(life), 0);
	fcntl(life[0], F_SETFD, FD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		execl(test_profile_command(), "lull", "profile", "-q", "-s", "none", "--cpuctxsw",
		      "none", "--python-sampling=false", "-t", "nvtx", "-f", "-c", capture,
		      "--capture-range-end", "repeat", "-o", report, LULL_BUILD "/e2e/marks", how,
		      counts_path, n_threads, ms, pace, (char *)NULL);
		_exit(127);
	}
	close(life[1]);
	life_fd = life[0];
	return pid;
}

/* Wait for the end of the recorder. */
static int wait_for(pid_t pid)
{
	return test_profile_wait(pid);
}

/* Wait for the end of the recorder and of the program, whichever is last. */
static int wait_for_both(pid_t pid)
{
	struct pollfd life = { .fd = life_fd, .events = POLLIN };
	int status = wait_for(pid);

	if (poll(&life, 1, (int)test_patience_s() * 1000) != 1)
		fail_msg("the program does not end");
	close(life_fd);
	return status;
}

static int recover(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(test_profile_command(), "lull", "recover", part, (char *)NULL);
		_exit(127);
	}
	return wait_for(pid);
}

static void read_counts(unsigned long long *counts)
{
	int fd = open(counts_path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, counts, N_THREADS * sizeof(*counts)),
			 N_THREADS * (int)sizeof(*counts));
	close(fd);
}

/* What the report has of one thread. */
struct seen {
	u64 n;
	u64 highest;
	u64 room;
	u8 *is_there; /* by value */
};

static void see(struct seen *s, u64 value)
{
	assert_true(value < s->room);
	if (s->is_there[value])
		fail_msg("value %llu is in the report twice", (unsigned long long)value);
	s->is_there[value] = 1;
	s->n++;
	if (value > s->highest)
		s->highest = value;
}

/* Which thread a label belongs to. */
static int thread_of(struct lull_reader *r, u32 label)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	int thread = -1;

	assert_true(label >= 1 && label <= n);
	if (sscanf(lull_reader_string(r, labels[label - 1].name, NULL), "thread %d", &thread) != 1)
		fail_msg("a mark is called '%s'",
			 lull_reader_string(r, labels[label - 1].name, NULL));
	assert_true(thread >= 0 && thread < N_THREADS);
	return thread;
}

static struct lull_reader *open_report(void)
{
	struct lull_reader *r;
	struct lull_err err;

	if (lull_reader_open(&r, report, &err) != 0)
		fail_msg("%s", err.msg);
	assert_true(lull_reader_is_sealed(r));
	assert_int_equal(lull_reader_n_damaged(r), 0);
	return r;
}

/* Read all marks; returns how many events were dropped and counted. */
static u64 read_report(struct seen *seen)
{
	struct lull_reader *r;
	struct lull_cursor c;
	struct lull_mark_cols cols;
	const struct lull_lane_row *lanes;
	size_t n, n_lanes;
	u64 n_dropped = 0;

	r = open_report();
	lull_cursor_init(&c, r, LULL_TABLE_mark, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			see(&seen[thread_of(r, cols.label[i])], cols.payload[i]);
	lull_cursor_release(&c);
	lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	for (size_t i = 0; i < n_lanes; i++)
		n_dropped += lanes[i].n_dropped;
	lull_reader_close(r);
	return n_dropped;
}

static void prepare_seen(struct seen *seen, const unsigned long long *counts)
{
	for (int i = 0; i < N_THREADS; i++) {
		seen[i] = (struct seen){ .room = counts[i] + 2 };
		seen[i].is_there = lull_alloc(seen[i].room, 1);
	}
}

static u64 check_report(const char *how)
{
	unsigned long long counts[N_THREADS];
	struct seen seen[N_THREADS];
	u64 n_marks = 0;

	read_counts(counts);
	prepare_seen(seen, counts);
	assert_int_equal(read_report(seen), 0);
	for (int i = 0; i < N_THREADS; i++) {
		/*
		 * One more than counted may be there: it had returned, and its count was not yet
		 * stored.
		 */
		if (seen[i].n < counts[i] || seen[i].n > counts[i] + 1 ||
		    (seen[i].n && seen[i].highest != seen[i].n - 1))
			fail_msg("%s: thread %d emitted %llu marks, the report has %llu up to %llu",
				 how, i, counts[i], (unsigned long long)seen[i].n,
				 (unsigned long long)seen[i].highest);
		n_marks += seen[i].n;
		free(seen[i].is_there);
	}
	return n_marks;
}

/* The sum of what all threads counted so far; 0 as long as the program has not begun. */
static u64 n_counted(void)
{
	unsigned long long counts[N_THREADS] = { 0 };
	int fd = open(counts_path, O_RDONLY | O_CLOEXEC);
	u64 n = 0;

	if (fd < 0)
		return 0;
	if (read(fd, counts, sizeof(counts)) == (ssize_t)sizeof(counts))
		for (int i = 0; i < N_THREADS; i++)
			n += counts[i];
	close(fd);
	return n;
}

/*
 * The recorder is killed while it records, the program runs on and ends, lull recover finishes the
 * report.
 */
static void kill_recorder(const char *ms, unsigned wait_ms)
{
	pid_t pid = start("orphan", ms, "500");

	test_wait_for(n_counted() > 0);
	usleep(wait_ms * 1000);
	kill(pid, SIGKILL);
	assert_int_equal(wait_for_both(pid), 128 + SIGKILL);
	assert_int_equal(recover(), 0);
}

static void every_mark_that_returned_is_in_the_report(void **state)
{
	const char *text = getenv("KILLS");
	int n_kills = text ? atoi(text) : 200;
	unsigned seed = 12345;
	u64 n_marks = 0;

	(void)state;
	for (int i = 0; i < n_kills; i++) {
		const struct ending *e = &endings[(unsigned)i % LULL_COUNT_OF(endings)];
		unsigned ms = (unsigned)rand_r(&seed) % 60;
		char ms_text[16];
		int status;

		snprintf(ms_text, sizeof(ms_text), "%u", ms);
		if (strcmp(e->how, "orphan") == 0) {
			kill_recorder(ms_text, (unsigned)rand_r(&seed) % 60);
		} else {
			status = wait_for_both(start(e->how, ms_text, "500"));
			if (status != e->status)
				fail_msg("%s: lull profile returned %d, not %d", e->how, status,
					 e->status);
		}
		n_marks += check_report(e->how);
	}
	print_message("%d endings, %llu marks, none lost, none twice\n", n_kills,
		      (unsigned long long)n_marks);
}

/* The program kills the recorder before it emits anything: all there is lies in shared memory. */
static void the_program_begins_only_when_it_can_be_recovered(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(wait_for_both(start("alone", "20", "500")), 128 + SIGKILL);
		assert_true(n_counted() > 0);
		assert_int_equal(recover(), 0);
		check_report("alone");
	}
}

/*
 * The program begins to record, and the recorder dies before it has seen that. Without a file all
 * lies in shared memory, after what is left there of the recording before it.
 */
static void a_capture_range_that_nobody_saw_is_recovered(void **state)
{
	static const char *const ways[] = { "unseen", "again" };

	(void)state;
	capture = "lull";
	for (size_t i = 0; i < LULL_COUNT_OF(ways); i++) {
		assert_int_equal(wait_for_both(start(ways[i], "20", "500")), 128 + SIGKILL);
		assert_true(n_counted() > 0);
		if (i > 0) {
			/* A child of the recorder may be at it still. */
			test_wait_for(access(report, F_OK) == 0);
			lull_reader_close(open_report());
			unlink(report);
			name_report("r-2.lull");
		}
		assert_int_not_equal(access(part, F_OK), 0);
		assert_int_equal(recover(), 0);
		check_report(ways[i]);
		name_report("r.lull");
	}
}

/* What a recorder left in shared memory that was killed before the program began. */
static void remove_session(pid_t pid)
{
	char words[128];

	snprintf(words, sizeof(words), "rm -rf /dev/shm/lull-%u-%d-* ${TMPDIR:-/tmp}/lull-%u-%d-*",
		 getuid(), (int)pid, getuid(), (int)pid);
	assert_int_equal(system(words), 0);
}

/* The recorder is killed at any moment of its beginning, which takes `begin_us` about. */
static bool kill_at_begin(unsigned at_us)
{
	pid_t pid = start("exit", "5", "500");
	bool has_begun;

	usleep(at_us);
	kill(pid, SIGKILL);
	wait_for_both(pid);
	has_begun = access(counts_path, F_OK) == 0;
	if (has_begun && access(report, F_OK) != 0)
		assert_int_equal(recover(), 0);
	if (has_begun)
		check_report("killed at its start");
	remove_session(pid);
	return has_begun;
}

#define N_MOMENTS 40u

static void a_recorder_that_dies_as_it_begins_loses_nothing(void **state)
{
	u64 start_ns = lull_now_ns(), begin_us;
	pid_t pid = start("exit", "5", "500");
	unsigned n_begun = 0;

	(void)state;
	test_wait_for(access(counts_path, F_OK) == 0);
	begin_us = (lull_now_ns() - start_ns) / 1000;
	wait_for_both(pid);
	for (unsigned i = 0; i < N_MOMENTS; i++)
		n_begun += kill_at_begin((unsigned)(begin_us * (i + 1) * 5 / 4 / N_MOMENTS));
	print_message("%u of %u recorders died before their program began\n", N_MOMENTS - n_begun,
		      N_MOMENTS);
}

static void under_overload_recorded_plus_dropped_is_emitted(void **state)
{
	unsigned long long counts[N_THREADS];
	struct seen seen[N_THREADS];
	u64 n_emitted = 0, n_seen = 0, n_dropped;

	(void)state;
	assert_int_equal(wait_for_both(start("exit", "10", "0")), 3);
	read_counts(counts);
	prepare_seen(seen, counts);
	n_dropped = read_report(seen);
	for (int i = 0; i < N_THREADS; i++) {
		n_emitted += counts[i];
		n_seen += seen[i].n;
		free(seen[i].is_there);
	}
	print_message("%llu emitted = %llu recorded + %llu dropped\n",
		      (unsigned long long)n_emitted, (unsigned long long)n_seen,
		      (unsigned long long)n_dropped);
	assert_int_equal(n_emitted, n_seen + n_dropped);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	name_report("r.lull");
	snprintf(counts_path, sizeof(counts_path), "%s/counts", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(report);
	unlink(counts_path);
	name_report("r-2.lull");
	unlink(report);
	rmdir(folder);
	return 0;
}

/* Each test begins with these. */
static int begin(void **state)
{
	(void)state;
	capture = "none";
	name_report("r.lull");
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_mark_that_returned_is_in_the_report),
		TEST(the_program_begins_only_when_it_can_be_recovered),
		TEST(a_capture_range_that_nobody_saw_is_recovered),
		TEST(a_recorder_that_dies_as_it_begins_loses_nothing),
		TEST(under_overload_recorded_plus_dropped_is_emitted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
