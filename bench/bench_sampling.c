/*
 * bench_sampling - what CPU sampling costs the program that is sampled.
 *
 *	cc -O2 -D_GNU_SOURCE -iquote src -o build/bench_sampling bench/bench_sampling.c \
 *		src/record/perf/perf*.c src/base/[a-z]*.c && build/bench_sampling [ROUNDS]
 *
 * A child computes for a fixed amount of work, alternately without and with sampling at 1 kHz and
 * 8 KiB of stack, drained every 20 ms as the recorder does. Printed: the ratio of the medians of
 * its CPU time (what sampling takes from it) and of the wall time (which also holds the recorder's
 * share, when CPUs are few). Fails if half of the samples that its CPU time should give are
 * missing, exits with 77 where the kernel refuses to sample.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "record/perf/perf.h"

#define WORK 300000000ULL /* about a third of a second */

struct run {
	double wall_s, cpu_s;
	u64 n_samples, n_lost;
};

static volatile u64 sink;

static void work(void)
{
	u64 x = 88172645463325252ULL;

	for (u64 i = 0; i < WORK; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

static void on_sample(void *ctx, const struct lull_perf_sample *sample)
{
	struct run *run = ctx;

	run->n_samples += sample->stack_bytes > 0;
}

static void on_lost(void *ctx, u64 n, u64 time_ns)
{
	struct run *run = ctx;

	(void)time_ns;
	run->n_lost += n;
}

static const struct lull_perf_handlers handlers = { .sample = on_sample, .lost = on_lost };

/* Wait for the child as the recorder does, draining every 20 ms. */
static void collect(struct lull_perf *perf, pid_t pid, struct run *run)
{
	struct rusage usage;

	while (wait4(pid, NULL, WNOHANG, &usage) == 0) {
		usleep(20000);
		if (perf)
			lull_perf_drain(perf, &handlers, run);
	}
	if (perf)
		lull_perf_flush(perf, &handlers, run);
	run->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct run run_once(bool is_sampled)
{
	struct lull_perf_options options = LULL_PERF_OPTIONS_INIT;
	struct lull_perf *perf = NULL;
	struct run run = { 0 };
	struct lull_err err;
	u64 times_ns[2];
	int go[2], done[2];
	char byte = 0;
	pid_t pid;

	if (pipe(go) || pipe(done))
		exit(1);
	pid = fork();
	if (!pid) {
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		times_ns[0] = lull_now_ns();
		work();
		times_ns[1] = lull_now_ns();
		_exit(write(done[1], times_ns, sizeof(times_ns)) != sizeof(times_ns));
	}
	options.regs_mask = 0x1ff; /* nine registers, on either machine */
	if (is_sampled && lull_perf_open(&perf, &options, pid, &err)) {
		printf("SKIPPED: %s\n", err.msg);
		kill(pid, SIGKILL);
		exit(77);
	}
	if (write(go[1], &byte, 1) != 1)
		exit(1);
	collect(perf, pid, &run);
	if (read(done[0], times_ns, sizeof(times_ns)) != sizeof(times_ns))
		exit(1);
	run.wall_s = (double)(times_ns[1] - times_ns[0]) / 1e9;
	lull_perf_close(perf);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	return run;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Were samples taken, with stacks, for at least half of the CPU time? */
static void check(u64 n_samples, const double *cpu_s, int rounds)
{
	struct lull_perf_options options = LULL_PERF_OPTIONS_INIT;
	double wanted = 0;

	for (int i = 0; i < rounds; i++)
		wanted += cpu_s[i] * options.rate_hz;
	if ((double)n_samples >= wanted / 2)
		return;
	fprintf(stderr, "bench_sampling: %llu samples with stacks where %.0f are due\n",
		(unsigned long long)n_samples, wanted);
	exit(1);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 15;
	double *wall[2], *cpu[2];
	u64 n_samples = 0, n_lost = 0;

	for (int k = 0; k < 2; k++) {
		wall[k] = calloc((size_t)rounds, sizeof(double));
		cpu[k] = calloc((size_t)rounds, sizeof(double));
	}
	run_once(true); /* warm up */
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 2; k++) {
			/* Which goes first alternates, so that a drift of the clock rate hits both.
			 */
			int is_sampled = (k + i) % 2;
			struct run run = run_once(is_sampled);

			wall[is_sampled][i] = run.wall_s;
			cpu[is_sampled][i] = run.cpu_s;
			n_samples += run.n_samples;
			n_lost += run.n_lost;
		}
	}
	check(n_samples, cpu[1], rounds);
	printf("cpu_ratio %.4f\n", median(cpu[1], rounds) / median(cpu[0], rounds));
	printf("wall_ratio %.4f\n", median(wall[1], rounds) / median(wall[0], rounds));
	printf("samples_per_run %.1f\nlost %llu\nrun_s %.3f\n", (double)n_samples / rounds,
	       (unsigned long long)n_lost, median(wall[0], rounds));
	for (int k = 0; k < 2; k++) {
		free(wall[k]);
		free(cpu[k]);
	}
	return 0;
}
