/*
 * bench_osrt - what a wrapped call of the C library costs.
 *
 *	bench_osrt AGENT	ns per call: plain, and on top with the agent idle and recording
 *
 * Runs itself under the agent. The plain call is libc's own, found past the wrapper; recording is
 * switched on with a threshold that no call reaches. The three take turns many times over, with two
 * reads of the clock to compare with, and the fastest of each counts, because whatever else the
 * machine does only ever adds.
 *
 * Under such a threshold nothing is recorded, and that is checked. So that it was measured at all:
 * the two functions must differ, and without a threshold each call must be in the image. Locks that
 * are free never are.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/session.h"

#define N_CALLS	 20000
#define N_ROUNDS 400
#define N_CHECKS 1000

/* Functions as the guest finds them, and libc's own. */
struct libc {
	__typeof__(read) *read;
	__typeof__(write) *write;
	__typeof__(pthread_mutex_lock) *lock;
	__typeof__(sem_wait) *sem_wait;
	__typeof__(fwrite) *fwrite;
};

static int zero_fd, null_fd;
static FILE *stream;
static char byte;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;

static void one_read(const struct libc *f)
{
	if (f->read(zero_fd, &byte, 1) != 1)
		exit(1);
}

static void one_write(const struct libc *f)
{
	if (f->write(null_fd, &byte, 1) != 1)
		exit(1);
}

static void one_lock(const struct libc *f)
{
	f->lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void one_sem(const struct libc *f)
{
	f->sem_wait(&sem);
	sem_post(&sem);
}

static void one_fwrite(const struct libc *f)
{
	f->fwrite(&byte, 1, 1, stream);
}

static const struct {
	const char *name;
	void (*call)(const struct libc *);
	bool is_timed; /* else only tried, since it is free */
} loops[] = {
	{ "read of 1 byte", one_read, true },
	{ "write of 1 byte", one_write, true },
	{ "free mutex, lock and unlock", one_lock, false },
	{ "free semaphore, wait and post", one_sem, false },
	{ "fwrite of 1 byte, buffered", one_fwrite, true },
};

static void one_pair_of_clocks(const struct libc *f)
{
	(void)f;
	lull_now_ns();
	lull_now_ns();
}

static f64 run_once(void (*call)(const struct libc *), const struct libc *f)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		call(f);
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static void keep_least(f64 *least, f64 value)
{
	if (value < *least)
		*least = value;
}

struct guest {
	struct lull_control *control;
	const struct lull_image *image;
	struct libc wrapped, plain;
	u64 n_recorded; /* calls that should be in the image */
};

static void fail(const char *name, const char *what)
{
	fprintf(stderr, "bench_osrt: %s: %s\n", name, what);
	exit(1);
}

/* That the agent stands in between, was silent, and is not when there is no threshold. */
static void check(struct guest *g, size_t ix)
{
	if (bench_session_n_events(g->image, LULL_EVENT_oscall) != g->n_recorded)
		fail(loops[ix].name, "calls under the threshold were recorded");
	g->control->osrt_threshold_ticks = 0;
	atomic_store(&g->control->record, 1);
	for (int i = 0; i < N_CHECKS; i++)
		loops[ix].call(&g->wrapped);
	atomic_store(&g->control->record, 0);
	g->control->osrt_threshold_ticks = UINT64_MAX;
	g->n_recorded += loops[ix].is_timed ? N_CHECKS : 0;
	if (bench_session_n_events(g->image, LULL_EVENT_oscall) != g->n_recorded)
		fail(loops[ix].name, "not every call passes through the agent");
}

static void measure(struct guest *g, size_t ix, f64 *clocks)
{
	f64 alone = 1e9, idle = 1e9, timed = 1e9;
	void (*call)(const struct libc *) = loops[ix].call;

	for (int round = 0; round < N_ROUNDS; round++) {
		keep_least(clocks, run_once(one_pair_of_clocks, NULL));
		keep_least(&alone, run_once(call, &g->plain));
		keep_least(&idle, run_once(call, &g->wrapped));
		atomic_store(&g->control->record, 1);
		keep_least(&timed, run_once(call, &g->wrapped));
		atomic_store(&g->control->record, 0);
	}
	check(g, ix);
	printf("%-32s %10.1f %+10.1f %+10.1f\n", loops[ix].name, alone, idle - alone,
	       timed - alone);
}

static struct guest find_guest(void)
{
	void *own = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct guest g = {
		.control = bench_session_control(),
		.image = bench_session_image(),
		.wrapped = { read, write, pthread_mutex_lock, sem_wait, fwrite },
		.plain = { .read = dlsym(own, "read"),
			   .write = dlsym(own, "write"),
			   .lock = dlsym(own, "pthread_mutex_lock"),
			   .sem_wait = dlsym(own, "sem_wait"),
			   .fwrite = dlsym(own, "fwrite") },
	};

	if (!g.control || !g.image)
		fail("agent", "not here");
	if (g.plain.read == g.wrapped.read || g.plain.write == g.wrapped.write ||
	    g.plain.lock == g.wrapped.lock || g.plain.sem_wait == g.wrapped.sem_wait ||
	    g.plain.fwrite == g.wrapped.fwrite)
		fail("agent", "does not wrap what is measured");
	return g;
}

static int measure_all(void)
{
	struct guest g = find_guest();
	f64 clocks = 1e9;

	zero_fd = open("/dev/zero", O_RDONLY);
	null_fd = open("/dev/null", O_WRONLY);
	stream = fopen("/dev/null", "w");
	sem_init(&sem, 0, 1);
	printf("%-32s %10s %10s %10s\n", "ns per call", "plain", "idle", "recording");
	for (size_t i = 0; i < LULL_COUNT_OF(loops); i++)
		measure(&g, i, &clocks);
	printf("%-32s %10.1f\n", "two clocks, beside OS calls", clocks);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct lull_control control = {
		.sources = LULL_SOURCE_OSRT,
		.osrt_threshold_ticks = UINT64_MAX,
		.backtrace_ticks = UINT64_MAX,
	};

	if (bench_session_is_inside())
		return measure_all();
	if (argc < 2) {
		fprintf(stderr, "usage: bench_osrt AGENT\n");
		return 2;
	}
	return bench_session_run(argv[1], &control, argv);
}
