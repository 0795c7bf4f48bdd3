/*
 * bench_lib - what a watched call of a library costs (--trace-library).
 *
 *	bench_lib AGENT		ns per call: plain, and on top with the agent idle and recording
 *
 * Runs itself under the agent, which watches a function of libc that does nothing. The plain call
 * goes through an address in data, which the agent leaves alone. They take turns, with two reads of
 * the clock to compare with, and the fastest of each counts. The events stay in the image, so each
 * chunk is touched for the first time. In the end they are counted: there must be one for each call
 * that was made while recording, and none for the others.
 */
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "bench/session.h"

#define N_CALLS	 20000
#define N_ROUNDS 150 /* 3 M events of 32 bytes: they all fit */

typedef const char *version_fn(void);

static version_fn *volatile plain_call = gnu_get_libc_version;

static f64 run_clocks(void)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++) {
		lull_now_ns();
		lull_now_ns();
	}
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static f64 run_plain(void)
{
	version_fn *volatile fn = plain_call;
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		fn();
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static f64 run_watched(void)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		gnu_get_libc_version();
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static void keep_least(f64 *least, f64 value)
{
	if (value < *least)
		*least = value;
}

static int check(const struct lull_image *image)
{
	u64 n = bench_session_n_events(image, LULL_EVENT_lib_call);
	u64 wanted = (u64)N_CALLS * N_ROUNDS;

	if (n == wanted)
		return 0;
	fprintf(stderr, "bench_lib: %llu of %llu calls were recorded, %llu events dropped\n",
		(unsigned long long)n, (unsigned long long)wanted,
		(unsigned long long)bench_session_n_dropped(image));
	return 1;
}

static int measure(void)
{
	f64 clocks = 1e9, plain = 1e9, idle = 1e9, timed = 1e9;
	struct lull_control *control = bench_session_control();
	const struct lull_image *image = bench_session_image();

	if (!control || !image) {
		fprintf(stderr, "bench_lib: the agent is not here\n");
		return 1;
	}
	for (int round = 0; round < N_ROUNDS; round++) {
		keep_least(&clocks, run_clocks());
		keep_least(&plain, run_plain());
		keep_least(&idle, run_watched());
		atomic_store(&control->record, 1);
		keep_least(&timed, run_watched());
		atomic_store(&control->record, 0);
	}
	if (check(image))
		return 1;
	printf("%-32s %10s %10s %10s\n", "ns per call", "plain", "idle", "recording");
	printf("%-32s %10.1f %+10.1f %+10.1f\n", "library call", plain, idle - plain,
	       timed - plain);
	printf("%-32s %10.1f\n", "two clocks, beside library calls", clocks);
	return 0;
}

int main(int argc, char **argv)
{
	static struct lull_control control = {
		.sources = LULL_SOURCE_LIBRARY,
		.libraries = "libc.so:gnu_get_libc_version\n",
	};

	if (bench_session_is_inside())
		return measure();
	if (argc < 2) {
		fprintf(stderr, "usage: bench_lib AGENT\n");
		return 2;
	}
	return bench_session_run(argv[1], &control, argv);
}
