#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "record/process/usage.h"
#include "support/skip.h"

static volatile u64 sink;

static u64 tick_ns(void)
{
	return LULL_NS_PER_S / (u64)sysconf(_SC_CLK_TCK);
}

static void own_usage_is_plausible(void **state)
{
	const size_t size_bytes = 32 << 20;
	struct lull_usage before, after;
	u64 outer_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID), inner_ns, spent_ns;
	char *block;

	(void)state;
	test_skip_emulated("/proc describes the emulator");
	assert_true(lull_usage_read(getpid(), &before));
	inner_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	block = malloc(size_bytes);
	for (size_t i = 0; i < size_bytes; i += 1024)
		((volatile char *)block)[i] = 1;
	while (lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < inner_ns + 60000000)
		sink++;
	inner_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - inner_ns;
	assert_true(lull_usage_read(getpid(), &after));
	outer_ns = lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - outer_ns;
	free(block);
	/* By the process's own clock; /proc counts user and system time in whole ticks each. */
	spent_ns = after.user_ns + after.system_ns - before.user_ns - before.system_ns;
	assert_true(spent_ns + 2 * tick_ns() >= inner_ns);
	assert_true(spent_ns <= outer_ns + 2 * tick_ns());
	assert_true(after.rss_bytes >= before.rss_bytes + size_bytes * 9 / 10);
	assert_true(after.max_rss_bytes + (1 << 20) >= after.rss_bytes);
	assert_true(after.n_threads >= 1);
}

static void a_name_with_brackets_does_not_confuse(void **state)
{
	struct lull_usage usage;
	char name[LULL_THREAD_NAME_BYTES];

	(void)state;
	test_skip_emulated("/proc describes the emulator");
	prctl(PR_SET_NAME, "a) R 7 (b");
	assert_true(lull_usage_read(getpid(), &usage));
	assert_true(usage.n_threads >= 1 && usage.n_threads < 100);
	assert_true(lull_usage_thread_name(getpid(), (u32)getpid(), name));
	assert_string_equal(name, "a) R 7 (b");
}

static void the_dead_are_reported_as_gone(void **state)
{
	char name[LULL_THREAD_NAME_BYTES];
	struct lull_usage usage;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(lull_usage_read(pid, &usage)); /* a zombie */
	waitpid(pid, NULL, 0);
	assert_false(lull_usage_read(pid, &usage));
	assert_false(lull_usage_thread_name(pid, (u32)pid, name));
}

struct names {
	u32 n;
	bool has_worker;
};

static void on_thread(void *ctx, u32 tid, const char *name)
{
	struct names *names = ctx;

	assert_true(tid > 0);
	names->n++;
	names->has_worker |= !strcmp(name, "worker-7");
}

static void *worker(void *arg)
{
	pthread_barrier_t *barrier = arg;

	prctl(PR_SET_NAME, "worker-7");
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

static void threads_are_named(void **state)
{
	struct names names = { 0 };
	pthread_barrier_t barrier;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, worker, &barrier);
	pthread_barrier_wait(&barrier);
	lull_usage_threads(getpid(), on_thread, &names);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	assert_true(names.n >= 2);
	assert_true(names.has_worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_usage_is_plausible),
		cmocka_unit_test(a_name_with_brackets_does_not_confuse),
		cmocka_unit_test(the_dead_are_reported_as_gone),
		cmocka_unit_test(threads_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
