/*
 * All that a program can do that is in the way of those who attach to it: forks, threads, files
 * that are loaded, memory, signals, a thread that computes without a system call.
 *
 * Ends with status 5 once there is a file "end", and prints how many results were wrong, and
 * whether there were signals.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int is_over;
static _Atomic long n_signals, n_bad;

static void on_signal(int signal)
{
	n_signals += signal == SIGALRM;
}

static double sum(int n)
{
	double s = 0;

	for (int i = 1; i <= n; i++)
		s += 1.0 / i;
	return s;
}

/* Keeps as many registers busy as there are, for some hundred us. */
static uint64_t hash(uint64_t n_rounds)
{
	uint64_t h[12];
	double d[12];

	for (uint64_t i = 0; i < 12; i++) {
		h[i] = i + 1;
		d[i] = (double)i;
	}
	for (uint64_t n = 0; n < n_rounds; n++)
		for (uint64_t i = 0; i < 12; i++) {
			h[i] = (h[i] ^ n) * 0x9e3779b97f4a7c15 + h[(i + 5) % 12];
			d[i] = d[i] * 0.5 + (double)(n % 7);
		}
	for (uint64_t i = 1; i < 12; i++)
		h[0] ^= h[i] + (uint64_t)(d[i] * 1e6);
	return h[0];
}

static void *compute(void *unused)
{
	const uint64_t expected = hash(5000);

	while (!is_over) {
		n_bad += hash(5000) != expected;
		usleep(300);
	}
	return unused;
}

static void *short_one(void *unused)
{
	n_bad += sum(1000) != sum(1000);
	return unused;
}

static void *threads(void *unused)
{
	while (!is_over) {
		pthread_t t[4];

		for (int i = 0; i < 4; i++)
			if (pthread_create(&t[i], 0, short_one, 0))
				abort();
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], 0);
		usleep(500);
	}
	return unused;
}

static void *files(void *unused)
{
	static const char *const names[] = { "libm.so.6", "libresolv.so.2", "libutil.so.1",
					     "libanl.so.1" };

	for (int i = 0; !is_over; i++) {
		void *handle = dlopen(names[i % 4], RTLD_NOW);
		char *memory = malloc(1000 + (size_t)(i % 100000));

		if (!memory)
			abort();
		memset(memory, 1, 1000);
		usleep(200);
		n_bad += memory[999] != 1;
		if (handle)
			dlclose(handle);
		free(memory);
	}
	return unused;
}

static void *children(void *unused)
{
	while (!is_over) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			void *memory = malloc(5000);

			free(memory);
			_exit(sum(100) == sum(100) ? 9 : 8);
		}
		n_bad += waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 9;
		usleep(1000);
	}
	return unused;
}

int main(void)
{
	void *(*const all[])(void *) = { threads, files, children, compute };
	struct itimerval each = { { 0, 700 }, { 0, 700 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t t[4];
	FILE *ready;

	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &each, 0);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], 0, all[i], 0))
			abort();
	ready = fopen("ready", "w");
	if (ready)
		fclose(ready);
	while (access("end", F_OK) != 0) {
		n_bad += sum(5000) != sum(5000);
		usleep(100);
	}
	is_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	printf("%ld %d\n", n_bad, n_signals > 0);
	return 5;
}
