/*
 * probe - work for a GPU whose truth is known, for the checks in test/gpu and bench/gpu.
 *
 *	probe count N		N kernels from 4 threads on 8 streams, with copies, sets and graphs
 *	probe loop N		N empty kernels on 4 streams; prints ns a launch, and the CPU's
 *	probe later N		the same after two seconds, when a short recording is over
 *	probe times		kernels of several lengths between CUDA events, 20 of each
 *	probe clock SECONDS	kernels that end when the host says so, 50 a second
 *	probe copies		pageable and pinned copies, some of them asynchronous
 *	probe soak SECONDS	4 threads that launch as fast as they can
 *	probe kill MS		launches for MS milliseconds, then SIGKILL
 *
 * Each prints one line "name=value ..." of what it did. libcuda is found at run time and kernels
 * are compiled by the driver, so that a C compiler is all it needs. Exit status 77: there is no
 * GPU.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lull.h"

#define N_THREADS   4
#define N_STREAMS   2 /* of a thread */
#define BATCH	    20
#define COPY_BYTES  (1u << 20)
#define GRAPH_NODES 10
#define RELAXED	    2 /* other threads may call what they like during a capture */

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuStreamCreate, new_stream, (void **, unsigned))                               \
	CALL(cuStreamSynchronize, wait_stream, (void *))                                    \
	CALL(cuEventCreate, new_event, (void **, unsigned))                                 \
	CALL(cuEventRecord, record_event, (void *, void *))                                 \
	CALL(cuEventElapsedTime, elapsed, (float *, void *, void *))                        \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemHostAlloc, alloc_host, (void **, size_t, unsigned))                       \
	CALL(cuMemcpyHtoD_v2, copy_in, (uint64_t, const void *, size_t))                    \
	CALL(cuMemcpyHtoDAsync_v2, copy_in_async, (uint64_t, const void *, size_t, void *)) \
	CALL(cuMemcpyDtoHAsync_v2, copy_out_async, (void *, uint64_t, size_t, void *))      \
	CALL(cuMemsetD32Async, set_async, (uint64_t, unsigned, size_t, void *))             \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))                                                    \
	CALL(cuStreamBeginCapture_v2, begin_capture, (void *, int))                         \
	CALL(cuStreamEndCapture, end_capture, (void *, void **))                            \
	CALL(cuGraphInstantiateWithFlags, instantiate, (void **, void *, uint64_t))         \
	CALL(cuGraphLaunch, launch_graph, (void *, void *))

#include "support/cuda_guest.h"

static const char ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry nothing()\n"
	"{\n"
	"	ret;\n"
	"}\n"
	/* runs for so many cycles */
	".visible .entry spin(.param .u64 cycles)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b64 %rd<5>;\n"
	"	ld.param.u64 %rd1, [cycles];\n"
	"	mov.u64 %rd2, %clock64;\n"
	"again:\n"
	"	mov.u64 %rd3, %clock64;\n"
	"	sub.u64 %rd4, %rd3, %rd2;\n"
	"	setp.lt.u64 %p1, %rd4, %rd1;\n"
	"	@%p1 bra again;\n"
	"	ret;\n"
	"}\n"
	/* runs until the host writes to the first word, then writes to the second */
	".visible .entry hold(.param .u64 words)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b32 %r<3>;\n"
	"	.reg .b64 %rd<2>;\n"
	"	ld.param.u64 %rd1, [words];\n"
	"	mov.u32 %r2, 1;\n"
	"again:\n"
	"	ld.volatile.u32 %r1, [%rd1];\n"
	"	setp.eq.u32 %p1, %r1, 0;\n"
	"	@%p1 bra again;\n"
	"	st.volatile.u32 [%rd1+64], %r2;\n"
	"	membar.sys;\n"
	"	ret;\n"
	"}\n";

static void *context, *nothing, *spin, *hold;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void launch(void *function, void *stream, void *param)
{
	void *params[] = { param };

	DO(launch, function, 1, 1, 1, 1, 1, 1, 0, stream, param ? params : NULL, NULL);
}

/* ---- count ---- */

static struct {
	_Atomic unsigned long kernels, copies, copy_bytes, sets, graphs, graph_kernels;
} counts;

struct worker {
	pthread_t thread;
	unsigned long n;
	uint64_t until_ns;
	void *streams[N_STREAMS];
	void *exec;
	uint64_t device;
	void *pinned;
};

static void prepare(struct worker *w)
{
	void *graph;

	DO(set_current, context);
	for (int i = 0; i < N_STREAMS; i++)
		DO(new_stream, &w->streams[i], 1);
	DO(alloc, &w->device, COPY_BYTES);
	DO(alloc_host, &w->pinned, COPY_BYTES, 0);
	DO(begin_capture, w->streams[0], RELAXED);
	for (int i = 0; i < GRAPH_NODES; i++)
		launch(nothing, w->streams[0], NULL);
	DO(end_capture, w->streams[0], &graph);
	DO(instantiate, &w->exec, graph, 0);
}

static void copy(struct worker *w, void *stream)
{
	DO(copy_in_async, w->device, w->pinned, COPY_BYTES, stream);
	DO(copy_out_async, w->pinned, w->device, COPY_BYTES / 2, stream);
	DO(set_async, w->device, 7, 256, stream);
	counts.copies += 2;
	counts.copy_bytes += COPY_BYTES + COPY_BYTES / 2;
	counts.sets++;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	prepare(w);
	for (unsigned long i = 0; i < w->n; i++) {
		void *stream = w->streams[i % N_STREAMS];

		launch(nothing, stream, NULL);
		counts.kernels++;
		if (i % 2500 == 0)
			copy(w, stream);
		if (i % 5000 == 0) {
			DO(launch_graph, w->exec, stream);
			counts.graphs++;
			counts.graph_kernels += GRAPH_NODES;
		}
		if (w->until_ns && i % 1000 == 0 && now_ns() > w->until_ns)
			break;
	}
	for (int i = 0; i < N_STREAMS; i++)
		DO(wait_stream, w->streams[i]);
	return NULL;
}

static long rss_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = atol(line + 6);
	if (f)
		fclose(f);
	return kb;
}

static void run_workers(unsigned long n, uint64_t until_ns)
{
	static struct worker workers[N_THREADS];

	for (int i = 0; i < N_THREADS; i++) {
		workers[i].n = n / N_THREADS;
		workers[i].until_ns = until_ns;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	DO(synchronize);
}

static void print_counts(void)
{
	printf("kernels=%lu copies=%lu copy_bytes=%lu sets=%lu graphs=%lu graph_kernels=%lu",
	       counts.kernels, counts.copies, counts.copy_bytes, counts.sets, counts.graphs,
	       counts.graph_kernels);
}

static void cmd_count(long n)
{
	uint64_t begin_ns = now_ns();

	run_workers((unsigned long)n, 0);
	print_counts();
	printf(" ms=%llu\n", (unsigned long long)(now_ns() - begin_ns) / 1000000);
}

#define SOAK_LOOKS 8

static atomic_int is_soaking = 1;
static uint64_t soak_step_ns;
static long looks_kb[SOAK_LOOKS];

/* Memory at eight moments of the soak: what fills once stays as it is, what grows goes on. */
static void *watch_memory(void *arg)
{
	(void)arg;
	for (int i = 0; i < SOAK_LOOKS; i++) {
		uint64_t until_ns = now_ns() + soak_step_ns;

		while (is_soaking && now_ns() < until_ns)
			usleep(10000);
		looks_kb[i] = rss_kb();
	}
	return NULL;
}

static void cmd_soak(long seconds)
{
	uint64_t ns = (uint64_t)seconds * 1000000000u;
	pthread_t watcher;

	soak_step_ns = ns / SOAK_LOOKS;
	pthread_create(&watcher, NULL, watch_memory, NULL);
	run_workers(~0ul, now_ns() + ns);
	is_soaking = 0;
	pthread_join(watcher, NULL);
	print_counts();
	for (int i = 0; i < SOAK_LOOKS; i++)
		printf(" kb_%d=%ld", i, looks_kb[i]);
	printf("\n");
}

/* ---- loop ---- */

static void cmd_loop(long n)
{
	void *streams[4];
	uint64_t begin_ns, begin_cpu_ns;

	for (int i = 0; i < 4; i++)
		DO(new_stream, &streams[i], 1);
	for (int i = 0; i < 2000; i++)
		launch(nothing, streams[i % 4], NULL);
	DO(synchronize);
	begin_ns = now_ns();
	begin_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < n; i++)
		launch(nothing, streams[i % 4], NULL);
	printf("cpu_per_launch=%.1f ",
	       (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns) / (double)n);
	DO(synchronize);
	printf("ns_per_launch=%.1f\n", (double)(now_ns() - begin_ns) / (double)n);
}

static void cmd_later(long n)
{
	sleep(2);
	cmd_loop(n);
}

/* ---- times ---- */

/* One batch of kernels of a length between two events; the range around it tells which. */
static void measure(void *stream, uint64_t cycles)
{
	uint64_t lead = 4000000;
	void *begin, *end;
	char name[32];
	float ms;

	DO(new_event, &begin, 0);
	DO(new_event, &end, 0);
	/* While it runs the whole batch is queued: no launch is waited for between the events. */
	launch(spin, stream, &lead);
	snprintf(name, sizeof(name), "batch %llu", (unsigned long long)cycles);
	lull_push(name);
	DO(record_event, begin, stream);
	for (int i = 0; i < BATCH; i++)
		launch(spin, stream, &cycles);
	DO(record_event, end, stream);
	lull_pop();
	DO(wait_stream, stream);
	DO(elapsed, &ms, begin, end);
	printf("batch_%llu=%.0f ", (unsigned long long)cycles, (double)ms * 1e6);
}

static void cmd_times(long unused)
{
	uint64_t warm = 1000000;
	void *stream;

	(void)unused;
	DO(new_stream, &stream, 1);
	/* The clock of an idle device is low at first. */
	for (int i = 0; i < 200; i++)
		launch(spin, stream, &warm);
	DO(wait_stream, stream);
	for (uint64_t cycles = 40000; cycles <= 5120000; cycles *= 2)
		measure(stream, cycles);
	printf("n=%d\n", BATCH);
}

/* ---- clock ---- */

/*
 * A kernel is let go by the host inside a range "let go" and answers before the range ends. So on
 * one clock the kernel ends after the range begins, and little after the range ends.
 */
static void let_go(volatile uint32_t *words, void *stream)
{
	uint64_t param = (uint64_t)(uintptr_t)words, limit_ns;

	words[0] = words[16] = 0;
	launch(hold, stream, &param);
	usleep(300);
	limit_ns = now_ns() + 1000000000u;
	lull_push("let go");
	words[0] = 1;
	while (!words[16] && now_ns() < limit_ns)
		continue;
	lull_pop();
	if (!words[16]) {
		fprintf(stderr, "probe: the kernel does not answer; is this a real GPU?\n");
		exit(3);
	}
	DO(wait_stream, stream);
}

static void cmd_clock(long seconds)
{
	uint64_t end_ns = now_ns() + (uint64_t)seconds * 1000000000u;
	unsigned long n = 0;
	void *stream, *words;

	DO(new_stream, &stream, 1);
	DO(alloc_host, &words, 4096, 0);
	while (now_ns() < end_ns) {
		let_go(words, stream);
		n++;
		usleep(20000);
	}
	printf("rounds=%lu\n", n);
}

/* ---- copies ---- */

static void cmd_copies(long unused)
{
	char *pageable = calloc(1, COPY_BYTES);
	void *stream, *pinned;
	uint64_t device;

	(void)unused;
	DO(new_stream, &stream, 1);
	DO(alloc, &device, COPY_BYTES);
	DO(alloc_host, &pinned, COPY_BYTES, 0);
	for (unsigned i = 0; i < 10; i++) {
		DO(copy_in, device, pageable, COPY_BYTES - i);
		DO(copy_in_async, device, pinned, COPY_BYTES - 16 * i, stream);
		DO(copy_out_async, pinned, device, COPY_BYTES / 2 - i, stream);
	}
	DO(wait_stream, stream);
	printf("pageable=10 pinned=20 pageable_bytes=%u pinned_bytes=%u\n", 10 * COPY_BYTES - 45,
	       10 * COPY_BYTES - 16 * 45 + 10 * (COPY_BYTES / 2) - 45);
}

/* ---- kill ---- */

/* How many launches were done, and how many of them 300 ms before the end. */
static void cmd_kill(long ms)
{
	uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)ms * 1000000u;
	unsigned long n = 0, n_before = 0;
	void *stream;

	DO(new_stream, &stream, 1);
	while (now_ns() < end_ns) {
		launch(nothing, stream, NULL);
		n++;
		if (now_ns() < end_ns - 300000000u)
			n_before = n;
		usleep(50);
	}
	printf("launched=%lu must_have=%lu\n", n, n_before);
	fflush(stdout);
	raise(SIGKILL);
}

static const struct {
	const char *name;
	void (*run)(long value);
	long otherwise;
} commands[] = {
	{ "count", cmd_count, 1000000 }, { "loop", cmd_loop, 200000 },	 { "times", cmd_times, 0 },
	{ "clock", cmd_clock, 5 },	 { "copies", cmd_copies, 0 },	 { "soak", cmd_soak, 60 },
	{ "kill", cmd_kill, 1500 },	 { "later", cmd_later, 100000 },
};

int main(int argc, char **argv)
{
	void *module;

	if (cuda_guest_find() != 0 || cuda.init(0) != 0)
		return 77;
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(load, &module, ptx);
	DO(get_function, &nothing, module, "nothing");
	DO(get_function, &spin, module, "spin");
	DO(get_function, &hold, module, "hold");
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			commands[i].run(argc > 2 ? atol(argv[2]) : commands[i].otherwise);
			return 0;
		}
	fprintf(stderr, "probe: count, loop, times, clock, copies, soak or kill?\n");
	return 2;
}
