/*
 * marks - a program that numbers its own marks, for the tests that kill it.
 *
 *	marks HOW COUNTS_FILE THREADS MILLISECONDS [PACE]
 *
 * Each thread emits marks "thread N" with values 0, 1, 2, ... and after each one returned stores
 * how many there were in COUNTS_FILE (mapped, so that the numbers outlive us). After the given time
 * the program ends as HOW says. PACE is the pause in us after every 50 marks; 0 means as fast as
 * possible, LIMIT marks a thread.
 *
 * Some ways to end are about the recorder, which is the parent: "orphan" waits until it is dead,
 * and "alone" kills it before the first mark. "unseen" stops it, so that it sees nothing of the
 * recording that lull_start() then begins, and kills it in the end; "again" does so with the second
 * recording.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lull.h"
#include "support/guest.h"

#define LIMIT 2000000ull

static volatile unsigned long long *counts;
static unsigned pace_us = 500;
static volatile int is_over;
static pid_t recorder;

static void *emit(void *arg)
{
	long thread = (long)arg;
	char name[32];

	snprintf(name, sizeof(name), "thread %ld", thread);
	for (unsigned long long n = 0; !is_over && (pace_us || n < LIMIT); n++) {
		lull_mark_value(name, n);
		counts[thread] = n + 1;
		if (pace_us && n % 50 == 49)
			usleep(pace_us);
	}
	return NULL;
}

static void *end_later(void *arg)
{
	usleep(20000);
	is_over = 1;
	usleep(20000);
	exit(*(int *)arg);
}

static void end_without_main(void)
{
	static int status = 3;
	pthread_t thread;

	pthread_create(&thread, NULL, end_later, &status);
	pthread_exit(NULL);
}

/* A real one, by a bad store. */
static void raise_segv(void)
{
	volatile int *volatile nowhere = (volatile int *)8;

	*nowhere = 0;
}

static void kill_recorder(void)
{
	kill(recorder, SIGKILL);
	guest_wait_for(getppid() != recorder);
}

static int is_stopped(pid_t pid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		exit(2);
	fclose(file);
	return state == 'T';
}

/* Begin a recording that the recorder does not see. */
static void begin_unseen(void)
{
	kill(recorder, SIGSTOP);
	guest_wait_for(is_stopped(recorder));
	lull_start();
}

/* One that it has seen and closed; marks of it must not be in the next. */
static void record_before(void)
{
	lull_start();
	for (unsigned long long n = 0; n < 1000; n++)
		lull_mark_value("thread 0", n);
	lull_stop();
	guest_wait_for_recorder();
}

static void leave(const char *how)
{
	if (strcmp(how, "orphan") == 0)
		guest_wait_for(getppid() != recorder);
	if (strcmp(how, "unseen") == 0 || strcmp(how, "again") == 0)
		kill_recorder();
	if (strcmp(how, "exit") == 0 || getppid() != recorder)
		exit(3);
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		raise_segv();
	if (strcmp(how, "term") == 0)
		kill(getpid(), SIGTERM);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "exec") == 0)
		execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
	if (strcmp(how, "pthread_exit") == 0)
		end_without_main();
	pause();
}

static int have_all(int n_threads, unsigned long long n_marks)
{
	for (int i = 0; i < n_threads; i++)
		if (counts[i] < n_marks)
			return 0;
	return 1;
}

static int map_counts(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return -1;
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return counts == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	int n_threads = argc > 4 ? atoi(argv[3]) : 0;

	if (n_threads < 1 || map_counts(argv[2]) != 0)
		return 2;
	if (argc > 5)
		pace_us = (unsigned)atoi(argv[5]);
	recorder = getppid();
	if (strcmp(argv[1], "alone") == 0)
		kill_recorder();
	if (strcmp(argv[1], "again") == 0)
		record_before();
	if (strcmp(argv[1], "unseen") == 0 || strcmp(argv[1], "again") == 0)
		begin_unseen();
	for (long i = 0; i < n_threads; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, emit, (void *)i);
		pthread_detach(thread);
	}
	/* On a busy machine threads may not have begun by now. */
	guest_wait_for(have_all(n_threads, 1));
	usleep((unsigned)atoi(argv[4]) * 1000);
	/* At full speed every thread goes to its limit. */
	if (!pace_us)
		guest_wait_for(have_all(n_threads, LIMIT));
	leave(argv[1]);
	return 2;
}
