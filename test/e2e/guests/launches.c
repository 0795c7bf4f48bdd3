/*
 * launches - a program that counts what it asks of CUDA, for tests of what is recorded.
 *
 *	launches ROUNDS [PAUSE_US]
 *
 * Four threads with two streams each launch kernels and graphs, copy and set memory for ROUNDS
 * rounds. Then one line "name=count ..." tells what was done. libcuda is found at run time; exit
 * status 77 means that there is none.
 *
 *	NEIGHBOUR=LIBRARY	another user of CUPTI (neighbour.c) is at work in the second of
 *				three runs
 *	NEIGHBOUR_FIRST=1	it begins before CUDA does, and the first run is its own, too
 *	LAUNCHES_END=HOW	_exit, abort, kill, exec (what is not there, then true), or fork
 *				(children come and go meanwhile)
 *	LAUNCHES_PROFILER=1	a run, then one between cuProfilerStart() and cuProfilerStop()
 *	LAUNCHES_TURNS=N	N runs between lull_start() and lull_stop(), others around them
 *	LAUNCHES_GRAPHS=N	graphs from the N-th of them on; 0: no graphs
 *	LAUNCHES_AFTER=WHAT	from the last of them on a thread that launches all the time
 *				("busy"), or a capture that does not end ("capture")
 *	LAUNCHES_GONE=WHEN	CUPTI is waited to be gone after "each" recording, or the "last"
 *	LAUNCHES_OFF=1		it ends when nothing more can be recorded, and all of CUPTI is off
 *	LAUNCHES_AWAIT=1	it begins when a recording is on
 *	LAUNCHES_ABORT=N	it aborts when so many records were delivered, however many rounds
 *	LAUNCHES_FAIL=1		a launch fails at the end
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lull.h"
#include "support/guest.h"

#define N_THREADS	4
#define N_STREAMS	2 /* of a thread */
#define COPY_BYTES	4096
#define GRAPH_NODES	3 /* kernels of a graph */
#define CAPTURE_RELAXED 2 /* other threads may call what they like meanwhile */

/* What we use of libcuda: symbol, short name, parameters. */
#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuStreamCreate, new_stream, (void **, unsigned))                               \
	CALL(cuStreamSynchronize, wait_stream, (void *))                                    \
	CALL(cuStreamWaitEvent, stream_wait_event, (void *, void *, unsigned))              \
	CALL(cuEventCreate, new_event, (void **, unsigned))                                 \
	CALL(cuEventRecord, record_event, (void *, void *))                                 \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemAllocHost_v2, alloc_host, (void **, size_t))                              \
	CALL(cuMemcpyHtoD_v2, copy_in, (uint64_t, const void *, size_t))                    \
	CALL(cuMemcpyHtoDAsync_v2, copy_in_async, (uint64_t, const void *, size_t, void *)) \
	CALL(cuMemcpyDtoHAsync_v2, copy_out_async, (void *, uint64_t, size_t, void *))      \
	CALL(cuMemcpyDtoDAsync_v2, copy_within_async, (uint64_t, uint64_t, size_t, void *)) \
	CALL(cuMemsetD32Async, set_async, (uint64_t, unsigned, size_t, void *))             \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))                                                    \
	CALL(cuStreamBeginCapture_v2, begin_capture, (void *, int))                         \
	CALL(cuStreamEndCapture, end_capture, (void *, void **))                            \
	CALL(cuGraphInstantiateWithFlags, instantiate, (void **, void *, uint64_t))         \
	CALL(cuGraphLaunch, launch_graph, (void *, void *))                                 \
	CALL(cuProfilerStart, profiler_start, (void))                                       \
	CALL(cuProfilerStop, profiler_stop, (void))

#include "support/cuda_guest.h"

static const char ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry count_up(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b64 %rd<3>;\n"
			  "	.reg .b32 %r<2>;\n"
			  "	ld.param.u64 %rd1, [at];\n"
			  "	cvta.to.global.u64 %rd2, %rd1;\n"
			  "	atom.global.add.u32 %r1, [%rd2], 1;\n"
			  "	ret;\n"
			  "}\n";

static struct {
	_Atomic unsigned long kernels, launches, graphs, graph_kernels, sets, set_bytes;
	_Atomic unsigned long in, in_pageable, out, within, copy_bytes, stream_waits, syncs;
} counts;

static int n_rounds, pause_us, has_graphs;
static unsigned n_abort; /* records that are enough, 0 = go on to the end */
static void *context, *function;

/* What one thread has. */
struct worker {
	pthread_t thread;
	void *streams[N_STREAMS];
	void *event, *exec;
	uint64_t device[2];
	void *pinned;
	char pageable[COPY_BYTES];
};

static void launch(struct worker *w, unsigned n_blocks, void *stream)
{
	void *params[] = { &w->device[0] };

	DO(launch, function, n_blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL);
	counts.launches++;
}

static void make_graph(struct worker *w)
{
	void *graph;

	DO(begin_capture, w->streams[0], CAPTURE_RELAXED);
	for (unsigned i = 0; i < GRAPH_NODES; i++)
		launch(w, i + 1, w->streams[0]);
	DO(end_capture, w->streams[0], &graph);
	DO(instantiate, &w->exec, graph, 0);
}

static void prepare(struct worker *w)
{
	DO(set_current, context);
	for (int i = 0; i < N_STREAMS; i++) {
		DO(new_stream, &w->streams[i], 1);
		DO(alloc, &w->device[i], COPY_BYTES);
	}
	DO(alloc_host, &w->pinned, COPY_BYTES);
	DO(new_event, &w->event, 0);
	if (has_graphs)
		make_graph(w);
}

static void copy(struct worker *w, int round, void *stream)
{
	size_t bytes = (size_t)(round % 4 + 1) * (COPY_BYTES / 4);

	DO(copy_in_async, w->device[0], w->pinned, bytes, stream);
	DO(copy_out_async, w->pinned, w->device[0], bytes, stream);
	DO(copy_within_async, w->device[1], w->device[0], bytes, stream);
	counts.in++;
	counts.out++;
	counts.within++;
	counts.copy_bytes += 3 * bytes;
	if (round % 10 == 0) {
		DO(copy_in, w->device[0], w->pageable, COPY_BYTES);
		counts.in_pageable++;
		counts.copy_bytes += COPY_BYTES;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	prepare(w);
	for (int i = 0; n_abort || i < n_rounds; i++) {
		void *stream = w->streams[i % N_STREAMS];

		launch(w, (unsigned)(i % 7 + 1), stream);
		counts.kernels++;
		DO(set_async, w->device[1], (unsigned)i, 64, stream);
		counts.sets++;
		counts.set_bytes += 256;
		copy(w, i, stream);
		DO(record_event, w->event, stream);
		DO(stream_wait_event, w->streams[(i + 1) % N_STREAMS], w->event, 0);
		if (has_graphs && i % 8 == 0) {
			DO(launch_graph, w->exec, stream);
			counts.graphs++;
			counts.graph_kernels += GRAPH_NODES;
		}
		if (i % 16 == 0) {
			DO(wait_stream, stream);
			counts.stream_waits++;
		}
		if (n_abort && cuda_guest_ask("delivered") >= n_abort)
			abort();
		if (pause_us)
			usleep((unsigned)pause_us);
	}
	return NULL;
}

static void run(void)
{
	static struct worker workers[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	DO(synchronize);
	counts.syncs++;
}

static void print_counts(void)
{
	printf("kernels=%lu launches=%lu graphs=%lu graph_kernels=%lu sets=%lu set_bytes=%lu ",
	       counts.kernels, counts.launches, counts.graphs, counts.graph_kernels, counts.sets,
	       counts.set_bytes);
	printf("in=%lu in_pageable=%lu out=%lu within=%lu copy_bytes=%lu stream_waits=%lu "
	       "syncs=%lu\n",
	       counts.in, counts.in_pageable, counts.out, counts.within, counts.copy_bytes,
	       counts.stream_waits, counts.syncs);
}

/* What the other tool should have seen. */
static struct {
	void (*begin)(void), (*end)(void);
	unsigned long kernels, copies, sets, bytes;
} neighbour;

static unsigned long count_copies(void)
{
	return counts.in + counts.in_pageable + counts.out + counts.within;
}

static void load_neighbour(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library) {
		*(void **)&neighbour.begin = dlsym(library, "neighbour_begin");
		*(void **)&neighbour.end = dlsym(library, "neighbour_end");
	}
	if (!neighbour.begin || !neighbour.end) {
		fprintf(stderr, "launches: no neighbour: %s\n", dlerror());
		exit(1);
	}
}

static void run_with_neighbour(int is_first)
{
	unsigned long kernels, copies, sets, bytes;

	if (!is_first)
		run();
	kernels = counts.kernels + counts.graph_kernels;
	copies = count_copies();
	sets = counts.sets;
	bytes = counts.copy_bytes;
	if (!is_first)
		neighbour.begin();
	run();
	neighbour.end();
	printf("shared_kernels=%lu shared_copies=%lu shared_sets=%lu shared_bytes=%lu\n",
	       counts.kernels + counts.graph_kernels - kernels, count_copies() - copies,
	       counts.sets - sets, counts.copy_bytes - bytes);
	run();
}

/* As workers of a data loader: forked after CUDA was used, gone without exit handlers. */
static void fork_children(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

/* Only the second run is to be recorded; its counts alone are printed. */
static void run_in_window(void)
{
	run();
	memset(&counts, 0, sizeof(counts));
	DO(profiler_start);
	run();
	DO(profiler_stop);
}

static atomic_int is_over, is_busy;

static void *launch_on(void *arg)
{
	struct worker *w = arg;

	DO(set_current, context);
	while (!is_over) {
		launch(w, 1, w->streams[0]);
		is_busy = 1;
		DO(wait_stream, w->streams[0]);
	}
	return NULL;
}

/* What makes it unsafe to leave CUPTI. */
static void begin_after(const char *what, struct worker *w)
{
	if (strcmp(what, "busy") == 0) {
		pthread_create(&w->thread, NULL, launch_on, w);
		guest_wait_for(is_busy);
	}
	if (strcmp(what, "capture") == 0)
		DO(begin_capture, w->streams[0], CAPTURE_RELAXED);
}

/* Tell the agent something: it leaves CUPTI where that is done. */
static bool has_left(unsigned n_times)
{
	lull_is_recording();
	return cuda_guest_ask("finalized") >= n_times;
}

/* It has tried by then. */
static void tell_something(void)
{
	for (int i = 0; i < 60; i++) {
		usleep(10000);
		lull_is_recording();
	}
}

/* Each run in between is to be recorded in a report of its own. */
static void run_by_turns(int n)
{
	const char *from = getenv("LAUNCHES_GRAPHS"), *after = getenv("LAUNCHES_AFTER");
	const char *gone = getenv("LAUNCHES_GONE");
	struct worker w;

	has_graphs = 0;
	prepare(&w);
	for (int i = 0; i < n; i++) {
		has_graphs = !from || (atoi(from) && i + 1 >= atoi(from));
		run();
		memset(&counts, 0, sizeof(counts));
		guest_wait_for_recorder();
		lull_start();
		run();
		if (i + 1 == n && after)
			begin_after(after, &w);
		lull_stop();
		print_counts();
		if (gone && strcmp(gone, "each") == 0)
			guest_wait_for(has_left((unsigned)i + 1));
	}
	run();
	if (gone && strcmp(gone, "last") == 0)
		guest_wait_for(has_left(1));
	else
		tell_something();
	is_over = 1;
	if (after && strcmp(after, "busy") == 0)
		pthread_join(w.thread, NULL);
}

static void fail_to_launch(void)
{
	int result = cuda.launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);

	printf("failed=%d ", result != 0);
}

static void end(const char *how)
{
	fflush(stdout);
	if (strcmp(how, "_exit") == 0)
		_exit(5);
	if (strcmp(how, "exec") == 0) {
		execl("/nowhere/true", "true", (char *)NULL);
		execlp("true", "true", (char *)NULL);
	}
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
}

int main(int argc, char **argv)
{
	const char *path = getenv("NEIGHBOUR"), *how = getenv("LAUNCHES_END");
	const char *turns = getenv("LAUNCHES_TURNS");
	int is_first = getenv("NEIGHBOUR_FIRST") != NULL;
	void *module;

	n_rounds = argc > 1 ? atoi(argv[1]) : 100;
	pause_us = argc > 2 ? atoi(argv[2]) : 0;
	has_graphs = 1;
	n_abort = getenv("LAUNCHES_ABORT") ? (unsigned)atoi(getenv("LAUNCHES_ABORT")) : 0;
	guest_set_limit();
	if (cuda_guest_find() != 0)
		return 77;
	if (getenv("LAUNCHES_AWAIT"))
		guest_wait_for(lull_is_recording());
	if (path)
		load_neighbour(path);
	if (path && is_first)
		neighbour.begin();
	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(load, &module, ptx);
	DO(get_function, &function, module, "count_up");
	if (how && strcmp(how, "fork") == 0)
		fork_children();
	if (path)
		run_with_neighbour(is_first);
	else if (getenv("LAUNCHES_PROFILER"))
		run_in_window();
	else if (turns)
		run_by_turns(atoi(turns));
	else
		run();
	if (getenv("LAUNCHES_FAIL"))
		fail_to_launch();
	if (!turns)
		print_counts();
	if (getenv("LAUNCHES_OFF"))
		guest_wait_for(guest_is_over() && cuda_guest_ask("on") == 0);
	if (how)
		end(how);
	return 0;
}
