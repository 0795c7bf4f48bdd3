/*
 * burner - a child with two threads that burn CPU time, and say themselves how much that was.
 *
 * The threads nap a few times, so that they lose their CPU and get it back on any machine, and then
 * burn until they have used `least_ns` and, if the child is endless, until burner_stop().
 */
#ifndef LULL_TEST_BURNER_H
#define LULL_TEST_BURNER_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

#define BURNER_THREADS 2
#define BURNER_NAPS    3

/* What a thread knows of itself. All times are ns. */
struct burner_thread {
	_Atomic u32 tid;    /* 0: it has not begun */
	_Atomic u64 cpu_ns; /* CPU time so far, by its own clock */
	u64 delay_ns; /* how long it was ready and had no CPU, in the end; 0 if nobody tells */
	u64 born_ns;  /* on CLOCK_MONOTONIC: before it was made, */
	u64 gone_ns;  /* and after it had ended */
};

/* Shared with the child. */
struct burner_page {
	struct burner_thread threads[BURNER_THREADS];
	u64 least_ns;
	_Atomic bool is_endless, is_over;
};

struct burner {
	pid_t pid;
	int go_fd; /* one byte starts it, as the recorder lets the target go */
	struct burner_page *page;
};

static volatile u64 burner_sink;

static inline u64 burner_delay_ns(void)
{
	unsigned long long cpu_ns, delay_ns = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &cpu_ns, &delay_ns) != 2)
		delay_ns = 0;
	fclose(file);
	return delay_ns;
}

/* The page and the thread of this number. */
struct burner_task {
	struct burner_page *page;
	struct burner_thread *thread;
};

static inline void *burner_run(void *arg)
{
	const struct burner_task *task = arg;
	struct burner_thread *t = task->thread;
	const struct burner_page *page = task->page;

	atomic_store(&t->tid, (u32)syscall(SYS_gettid));
	for (int i = 0; i < BURNER_NAPS; i++)
		usleep(1000);
	do {
		for (int i = 0; i < 2000; i++)
			burner_sink += (u64)i;
		atomic_store(&t->cpu_ns, lull_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	} while (t->cpu_ns < page->least_ns || (page->is_endless && !page->is_over));
	t->delay_ns = burner_delay_ns();
	atomic_store(&t->cpu_ns, lull_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	return NULL;
}

static inline void burner_main(int go_fd, struct burner_page *page)
{
	pthread_t threads[BURNER_THREADS];
	struct burner_task tasks[BURNER_THREADS];
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(1);
	prctl(PR_SET_NAME, "burner");
	for (int i = 0; i < BURNER_THREADS; i++) {
		tasks[i] = (struct burner_task){ page, &page->threads[i] };
		page->threads[i].born_ns = lull_now_ns();
		if (pthread_create(&threads[i], NULL, burner_run, &tasks[i]) != 0)
			_exit(1);
	}
	for (int i = 0; i < BURNER_THREADS; i++) {
		pthread_join(threads[i], NULL);
		page->threads[i].gone_ns = lull_now_ns();
	}
	_exit(0);
}

/* A child that waits to be let go. Fails the test if there can be none. */
static inline struct burner burner_start(u64 least_ns, bool is_endless)
{
	struct burner b;
	int go[2];

	assert_int_equal(pipe(go), 0);
	b.page = mmap(NULL, sizeof(*b.page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(b.page != MAP_FAILED);
	b.page->least_ns = least_ns;
	b.page->is_endless = is_endless;
	b.pid = fork();
	assert_true(b.pid >= 0);
	if (!b.pid)
		burner_main(go[0], b.page);
	close(go[0]);
	b.go_fd = go[1];
	return b;
}

static inline void burner_let_go(const struct burner *b)
{
	assert_int_equal(write(b->go_fd, "", 1), 1);
}

/* An endless one may end. */
static inline void burner_stop(const struct burner *b)
{
	atomic_store(&b->page->is_over, true);
}

static inline bool burner_has_ended(const struct burner *b)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)b->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == b->pid;
}

/* CPU time of both threads so far. */
static inline u64 burner_cpu_ns(const struct burner *b)
{
	return atomic_load(&b->page->threads[0].cpu_ns) + atomic_load(&b->page->threads[1].cpu_ns);
}

/* Wait for its end, and forget it. */
static inline void burner_end(const struct burner *b)
{
	close(b->go_fd);
	waitpid(b->pid, NULL, 0);
	munmap(b->page, sizeof(*b->page));
}

#endif
