/*
 * split_guest - 70 % of its CPU time in one function and 30 % in another, by its own clock; also
 * waits whose begin and end are known.
 *
 *	split_guest cpu UNTIL	seventy() and thirty(), called by work(), called by main(), for so
 *				many seconds of CPU time or until there is such a file; prints
 *				"cpu", and the CPU time of both in ns
 *	split_guest waits	a sleep, a read and a lock; for each its name, and four moments in
 *				ns of CLOCK_MONOTONIC: before the call, two during the wait,
 *				after the call
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support/guest.h"

#define SLEEP_NS 20000000

static volatile double sink;

/*
 * Not by clock_gettime(): in the vdso of aarch64, which has no tables, callers without frame
 * pointers are not found, and a thread mostly loses its CPU where it comes back from the kernel.
 */
static double cpu_s(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Burn CPU until the process has used `until_s`. Part of its caller, whose share is measured. */
static inline __attribute__((always_inline)) void burn(double until_s)
{
	while (cpu_s() < until_s)
		for (int i = 0; i < 20000; i++)
			sink += i * 0.5;
}

__attribute__((noinline)) static void seventy(double until_s)
{
	burn(until_s);
	sink += 1; /* no tail call: this frame stays */
}

__attribute__((noinline)) static void thirty(double until_s)
{
	burn(until_s);
	sink += 2; /* not the same code as above, or the compiler would make one function of both */
}

static bool is_over(const char *until, double begin_s)
{
	if (*until == '/')
		return access(until, F_OK) == 0;
	return cpu_s() - begin_s >= atof(until);
}

/* How long both took, by the process's clock. */
static double spent_s[2];

__attribute__((noinline)) static void work(const char *until)
{
	double begin_s = cpu_s();

	/*
	 * 59 ms: no multiple of any timer's period, or samples would fall on the same places again
	 * and again.
	 */
	while (!is_over(until, begin_s)) {
		double a_s = cpu_s(), b_s;

		seventy(a_s + 0.0413);
		b_s = cpu_s();
		thirty(a_s + 0.0590);
		spent_s[0] += b_s - a_s;
		spent_s[1] += cpu_s() - b_s;
	}
	sink += 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_held;
static int fds[2];

/* The thread that waits, and two moments at which it did for certain. */
static pid_t waiter;
static u64 inner_ns[2];

/* The thread sleeps in the kernel; there is nothing but the call in question for which it would. */
static bool is_asleep(pid_t tid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		exit(2);
	fclose(file);
	return state == 'S';
}

/* Returns when the other thread has waited for a while, and will until we do something. */
static void let_it_wait(unsigned us)
{
	guest_wait_for(is_asleep(waiter));
	inner_ns[0] = lull_now_ns();
	usleep(us);
	inner_ns[1] = lull_now_ns();
}

static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	is_held = 1;
	let_it_wait(25000);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *write_later(void *arg)
{
	let_it_wait(30000);
	if (write(fds[1], "x", 1) != 1)
		exit(2);
	return arg;
}

static void report(const char *what, u64 from_ns, u64 to_ns)
{
	printf("%s %llu %llu %llu %llu\n", what, (unsigned long long)from_ns,
	       (unsigned long long)inner_ns[0], (unsigned long long)inner_ns[1],
	       (unsigned long long)to_ns);
}

static void sleep_once(void)
{
	struct timespec pause = { 0, SLEEP_NS };
	u64 from_ns = lull_now_ns(), to_ns;

	nanosleep(&pause, NULL);
	to_ns = lull_now_ns();
	/* No shorter than asked for, so that it began and ended at these moments at the latest. */
	inner_ns[0] = to_ns - SLEEP_NS;
	inner_ns[1] = from_ns + SLEEP_NS;
	report("nanosleep", from_ns, to_ns);
}

static void read_once(void)
{
	pthread_t thread;
	u64 from_ns, to_ns;
	char byte;

	if (pipe(fds) != 0)
		exit(2);
	pthread_create(&thread, NULL, write_later, NULL);
	from_ns = lull_now_ns();
	if (read(fds[0], &byte, 1) != 1)
		exit(2);
	to_ns = lull_now_ns();
	pthread_join(thread, NULL);
	report("read", from_ns, to_ns);
}

static void lock_once(void)
{
	pthread_t thread;
	u64 from_ns, to_ns;

	pthread_create(&thread, NULL, hold, NULL);
	while (!is_held)
		sched_yield();
	from_ns = lull_now_ns();
	pthread_mutex_lock(&lock);
	to_ns = lull_now_ns();
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	report("pthread_mutex_lock", from_ns, to_ns);
}

int main(int argc, char **argv)
{
	guest_set_limit();
	waiter = gettid();
	if (argc > 2 && strcmp(argv[1], "cpu") == 0) {
		work(argv[2]);
		printf("cpu %.0f %.0f\n", spent_s[0] * 1e9, spent_s[1] * 1e9);
		return 0;
	}
	sleep_once();
	read_once();
	lock_once();
	return 0;
}
