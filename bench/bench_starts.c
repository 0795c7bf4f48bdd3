/*
 * bench_starts - what a process that is started costs more in a recording.
 *
 *	bench_starts LULL	us for a fork and the child's end, and for a fork and exec of
 *				"true", by the clock and of CPU time of both processes
 *
 * Runs itself alone and under `lull profile` by turns, and takes the median of all starts. Fails if
 * a process that was started is not in the report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

#define N_STARTS 100 /* in a run */
#define N_ROUNDS 5

enum { FORK, EXEC, N_KINDS };

/* CPU time of this process and of those it has waited for. */
static f64 cpu_us(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return (f64)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
		     children.ru_stime.tv_sec) *
		       1e6 +
	       (f64)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
		     children.ru_stime.tv_usec);
}

struct start {
	f64 wall_us, cpu_us;
};

static struct start start(int kind)
{
	f64 begin_us = cpu_us();
	u64 begin_ns = lull_now_ns();
	pid_t pid = fork();

	if (!pid) {
		if (kind == EXEC)
			execl("/bin/true", "true", (char *)NULL);
		_exit(kind == EXEC);
	}
	waitpid(pid, NULL, 0);
	return (struct start){ (f64)(lull_now_ns() - begin_ns) / 1e3, cpu_us() - begin_us };
}

/* A line for each start, for the process that started us. */
static int be_started(void)
{
	for (int i = 0; i < N_STARTS; i++)
		for (int kind = 0; kind < N_KINDS; kind++) {
			struct start s = start(kind);

			printf("%.3f %.3f\n", s.wall_us, s.cpu_us);
		}
	return 0;
}

static struct starts {
	f64 wall_us[N_KINDS][N_STARTS * N_ROUNDS], cpu_us[N_KINDS][N_STARTS * N_ROUNDS];
	int n;
} plain, recorded;

static int take(const char *command, struct starts *s)
{
	FILE *from = popen(command, "r");

	for (int i = 0; from && i < N_STARTS; i++, s->n++)
		if (fscanf(from, "%lf %lf %lf %lf", &s->wall_us[FORK][s->n], &s->cpu_us[FORK][s->n],
			   &s->wall_us[EXEC][s->n], &s->cpu_us[EXEC][s->n]) != 4)
			break;
	return from ? pclose(from) : -1;
}

/*
 * Each start makes a process in the report. It is one row, unless the recorder has no CPU for so
 * long that 32 forks wait for it: then it is one for the child and one for what that executes.
 */
static int check(const char *lull, const char *folder)
{
	char command[1024];
	int n_all = 0, n_true = 0;
	FILE *from;

	snprintf(command, sizeof(command),
		 "%s query -f csv %s/r.lull \"SELECT count(DISTINCT pid), sum(exe LIKE "
		 "'%%/true') FROM process\" | tail -1",
		 lull, folder);
	from = popen(command, "r");
	if (from && fscanf(from, "%d,%d", &n_all, &n_true) != 2)
		n_all = n_true = 0;
	if (from)
		pclose(from);
	if (n_true == N_STARTS && n_all == 2 * N_STARTS + 1)
		return 0;
	fprintf(stderr,
		"bench_starts: %d processes are in the report, %d of them true; not %d and %d\n",
		n_all, n_true, 2 * N_STARTS + 1, N_STARTS);
	return 1;
}

static int by_value(const void *a, const void *b)
{
	f64 x = *(const f64 *)a, y = *(const f64 *)b;

	return (x > y) - (x < y);
}

static f64 median(f64 *us, int n)
{
	qsort(us, (size_t)n, sizeof(f64), by_value);
	return us[n / 2];
}

static void print(const char *kind_name, int kind, const char *how, struct starts *s)
{
	printf("%s, %s  %.1f us\n", kind_name, how, median(s->wall_us[kind], s->n));
	printf("%s, %s, CPU  %.1f us\n", kind_name, how, median(s->cpu_us[kind], s->n));
}

int main(int argc, char **argv)
{
	static const char *const names[N_KINDS] = { "fork", "fork and exec" };
	char alone[512], with[1200], folder[] = "/tmp/lull-bench-XXXXXX";
	int rc = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_starts LULL\n");
		return 2;
	}
	if (strcmp(argv[1], "--started") == 0)
		return be_started();
	if (!mkdtemp(folder))
		return 1;
	snprintf(alone, sizeof(alone), "%s --started", argv[0]);
	snprintf(with, sizeof(with), "%s profile -q -f true -o %s/r %s", argv[1], folder, alone);
	for (int i = 0; i < N_ROUNDS && !rc; i++)
		rc = take(alone, &plain) | take(with, &recorded) | check(argv[1], folder);
	snprintf(with, sizeof(with), "rm -rf %s", folder);
	if (system(with) != 0 || rc || plain.n != recorded.n || plain.n != N_STARTS * N_ROUNDS) {
		fprintf(stderr, "bench_starts: not all starts were measured and recorded\n");
		return 1;
	}
	for (int kind = 0; kind < N_KINDS; kind++) {
		print(names[kind], kind, "plain", &plain);
		print(names[kind], kind, "recorded", &recorded);
	}
	return 0;
}
