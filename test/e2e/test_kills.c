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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
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
	{ "collector", 0 }, /* the recorder is killed instead */
};

static char folder[] = "/tmp/lull-kills-XXXXXX";
static char report[64], part[72], counts_path[64];

/* The command under test: $LULL, else the one of the build. */
static const char *command(void)
{
	const char *given = getenv("LULL");

	return given ? given : LULL_BUILD "/lull";
}

/* Start `lull profile` on the program; returns the recorder's pid. */
static pid_t start(const char *how, const char *ms, const char *pace)
{
	char n_threads[8];
	pid_t pid;

	snprintf(n_threads, sizeof(n_threads), "%d", N_THREADS);
	unlink(report);
	unlink(part);
	unlink(counts_path);
	pid = fork();
	if (pid == 0) {
		execl(command(), "lull", "profile", "-q", "-s", "none", "--cpuctxsw", "none",
		      "--python-sampling=false", "-t", "nvtx", "-f", "-o", report,
		      LULL_BUILD "/e2e/marks", how, counts_path, n_threads, ms, pace, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int recover(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(command(), "lull", "recover", part, (char *)NULL);
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

/* Read all marks; returns how many events were dropped and counted. */
static u64 read_report(struct seen *seen)
{
	struct lull_reader *r;
	struct lull_cursor c;
	struct lull_mark_cols cols;
	struct lull_err err;
	const struct lull_lane_row *lanes;
	size_t n, n_lanes;
	u64 n_dropped = 0;

	if (lull_reader_open(&r, report, &err) != 0)
		fail_msg("%s", err.msg);
	assert_true(lull_reader_is_sealed(r));
	assert_int_equal(lull_reader_n_damaged(r), 0);
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

/* The recorder is killed, the program runs on and ends, lull recover finishes the report. */
static void kill_collector(unsigned ms)
{
	char ms_text[16];
	pid_t pid;

	snprintf(ms_text, sizeof(ms_text), "%u", ms + 120);
	pid = start("exit", ms_text, "500");
	usleep((ms + 40) * 1000);
	kill(pid, SIGKILL);
	wait_for(pid);
	usleep(250 * 1000);
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
		if (strcmp(e->how, "collector") == 0) {
			kill_collector(ms);
		} else {
			status = wait_for(start(e->how, ms_text, "500"));
			if (status != e->status)
				fail_msg("%s: lull profile returned %d, not %d", e->how, status,
					 e->status);
		}
		n_marks += check_report(e->how);
	}
	print_message("%d endings, %llu marks, none lost, none twice\n", n_kills,
		      (unsigned long long)n_marks);
}

static void under_overload_recorded_plus_dropped_is_emitted(void **state)
{
	unsigned long long counts[N_THREADS];
	struct seen seen[N_THREADS];
	u64 n_emitted = 0, n_seen = 0, n_dropped;

	(void)state;
	assert_int_equal(wait_for(start("exit", "10", "0")), 3);
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
	snprintf(report, sizeof(report), "%s/r.lull", folder);
	snprintf(part, sizeof(part), "%s.part", report);
	snprintf(counts_path, sizeof(counts_path), "%s/counts", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(report);
	unlink(counts_path);
	rmdir(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mark_that_returned_is_in_the_report),
		cmocka_unit_test(under_overload_recorded_plus_dropped_is_emitted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
