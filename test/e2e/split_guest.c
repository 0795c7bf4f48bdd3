/*
 * split_guest - 70 % of its CPU time in one function and 30 % in another, by its own clock; also
 * waits of known length.
 *
 *	split_guest cpu SECONDS		seventy() and thirty(), called by work(), called by main()
 *	split_guest waits		sleep 20 ms, read 30 ms, lock 25 ms
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
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

__attribute__((noinline)) static void work(double seconds)
{
	double now_s = cpu_s(), end_s = now_s + seconds;

	/*
	 * 59 ms: no multiple of any timer's period, or samples would fall on the same places again
	 * and again.
	 */
	while (now_s < end_s) {
		seventy(now_s + 0.0413);
		thirty(now_s + 0.0590);
		now_s += 0.0590;
	}
	sink += 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_held;
static int fds[2];

static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	is_held = 1;
	usleep(25000);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *write_later(void *arg)
{
	usleep(30000);
	if (write(fds[1], "x", 1) != 1)
		exit(2);
	return arg;
}

/* Each wait is announced by its true length in ns on standard output. */
static void report(const char *what, const struct timespec *from)
{
	struct timespec to;

	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%s %lld\n", what,
	       (to.tv_sec - from->tv_sec) * 1000000000ll + to.tv_nsec - from->tv_nsec);
}

static void waits(void)
{
	struct timespec from, pause = { 0, 20000000 };
	pthread_t thread;
	char byte;

	clock_gettime(CLOCK_MONOTONIC, &from);
	nanosleep(&pause, NULL);
	report("nanosleep", &from);
	if (pipe(fds) != 0)
		exit(2);
	pthread_create(&thread, NULL, write_later, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (read(fds[0], &byte, 1) != 1)
		exit(2);
	report("read", &from);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, hold, NULL);
	while (!is_held)
		usleep(100);
	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_mutex_lock(&lock);
	report("pthread_mutex_lock", &from);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "cpu") == 0)
		work(atof(argv[2]));
	else
		waits();
	return 0;
}
