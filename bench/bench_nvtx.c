/*
 * bench_nvtx: what an NVTX call costs the program, in nanoseconds and in reads of the clock.
 *
 *	bench_nvtx AGENT	prints "name value unit" lines; needs no headers and no recorder
 *
 * Runs itself under the agent. A thread of its own plays the recorder: it counts the bytes of full
 * chunks and frees them. Each figure is the least of several rounds, which is what the code costs
 * when nothing disturbs it; rounds in which an event was dropped do not count. Fails if what was
 * recorded is less than what the calls have to write, or if something was although nobody records.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/session.h"
#include "support/nvtx_instance.h"

#define N_ROUNDS 60
#define N_CALLS	 200000
#define N_NAMES	 200

/* What the events of a call take at least. */
enum {
	PAIR_BYTES = sizeof(struct lull_wire_range) + sizeof(struct lull_event),
	EX_BYTES = PAIR_BYTES + sizeof(struct lull_wire_payload),
	START_BYTES = sizeof(struct lull_wire_start) + sizeof(struct lull_wire_end),
	MARK_BYTES = sizeof(struct lull_wire_range),
};

static struct nvtx_instance instance;
static _Atomic bool is_done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around a pass of the recorder */
static struct lull_image *image;
static u64 n_drained; /* bytes */

static void drain_once(void)
{
	struct lull_chunk *chunks = (void *)((u8 *)image + LULL_IMAGE_CHUNKS_OFF);

	for (u32 i = atomic_load(&image->n_used); i-- > 0;) {
		if (atomic_load(&chunks[i].state) != LULL_CHUNK_FULL)
			continue;
		n_drained += atomic_load(&chunks[i].committed);
		atomic_store(&chunks[i].committed, 0);
		atomic_store_explicit(&chunks[i].state, LULL_CHUNK_FREE, memory_order_release);
		atomic_store(&image->chunk_hint, i);
		atomic_fetch_add(&image->n_free, 1);
	}
}

/* The recorder's part: rule 1 of wire.h. */
static void *drain(void *unused)
{
	(void)unused;
	while (!atomic_load(&is_done)) {
		pthread_mutex_lock(&mutex);
		drain_once();
		pthread_mutex_unlock(&mutex);
		usleep(200);
	}
	return NULL;
}

/* Bytes that were ever recorded. */
static u64 n_recorded(void)
{
	u64 n;

	pthread_mutex_lock(&mutex);
	n = n_drained + bench_session_n_bytes(image);
	pthread_mutex_unlock(&mutex);
	return n;
}

static void two_clocks(void)
{
	lull_now_ns();
	lull_now_ns();
}

static void push_pop(void)
{
	instance.calls.range_push_a("forward");
	instance.calls.range_pop();
}

static void push_pop_ex(void)
{
	static const struct lull_nvtx_event event = {
		.version = LULL_NVTX_VERSION,
		.size_bytes = sizeof(event),
		.category = 3,
		.message_type = LULL_NVTX_MESSAGE_ASCII,
		.message = "ncclAllReduce",
		.payload_type = LULL_NVTX_PAYLOAD_U64,
		.payload = 1,
	};

	instance.calls.range_push_ex(&event);
	instance.calls.range_pop();
}

static void start_end(void)
{
	instance.calls.range_end(instance.calls.range_start_a("forward"));
}

static void mark(void)
{
	instance.calls.mark_a("forward");
}

/* A name that is new each time, as torch's emit_nvtx makes them. */
static void push_pop_unique(void)
{
	static u32 n;
	char name[] = "aten::add, seq = 00000000";

	for (u32 i = 0, v = n++; i < 8; i++, v /= 10)
		name[sizeof(name) - 2 - i] = (char)('0' + v % 10);
	instance.calls.range_push_a(name);
	instance.calls.range_pop();
}

/* As many names as a program of some size has, one after the other. */
static void push_pop_many(void)
{
	static char names[N_NAMES][16];
	static u32 n;
	char *name = names[n++ % N_NAMES];

	if (!*name)
		snprintf(name, sizeof(names[0]), "layer %u", n);
	instance.calls.range_push_a(name);
	instance.calls.range_pop();
}

/* What NVTX's inline functions do without a tool: look at the pointer. */
static void no_tool(void)
{
	static int (*volatile push)(const char *message);
	static int (*volatile pop)(void);

	if (push)
		push("forward");
	if (pop)
		pop();
}

static void check(const char *name, u64 n_bytes, u32 call_bytes, double best)
{
	u64 wanted = (u64)call_bytes * N_CALLS * N_ROUNDS;

	if (best == 0)
		fprintf(stderr, "bench_nvtx: %s: events were dropped in every round\n", name);
	else if (call_bytes ? n_bytes < wanted / 2 : n_bytes > 0)
		fprintf(stderr, "bench_nvtx: %s: %llu bytes were recorded, %llu are expected\n",
			name, (unsigned long long)n_bytes, (unsigned long long)wanted);
	else
		return;
	exit(1);
}

/* Nanoseconds a call, which writes so many bytes at least. */
static double measure(const char *name, void (*call)(void), u32 call_bytes)
{
	u64 before = n_recorded();
	double best = 0;

	for (int round = 0; round < N_ROUNDS; round++) {
		u64 n_dropped = bench_session_n_dropped(image), begin = lull_now_ns();
		double ns;

		for (int i = 0; i < N_CALLS; i++)
			call();
		ns = (double)(lull_now_ns() - begin) / N_CALLS;
		if (bench_session_n_dropped(image) == n_dropped && (best == 0 || ns < best))
			best = ns;
	}
	check(name, n_recorded() - before, call_bytes, best);
	printf("%-24s %7.1f ns\n", name, best);
	return best;
}

static int measure_all(void)
{
	struct lull_control *control = bench_session_control();
	double clocks, pair;
	pthread_t thread;

	image = bench_session_image();
	if (!control || !image || !nvtx_instance_load(&instance)) {
		fprintf(stderr, "bench_nvtx: the agent is not here\n");
		return 1;
	}
	pthread_create(&thread, NULL, drain, NULL);
	clocks = measure("clock_gettime x 2", two_clocks, 0);
	measure("push+pop, no tool", no_tool, 0);
	measure("push+pop, off", push_pop, 0);
	atomic_store(&control->record, 1);
	pair = measure("push+pop, on", push_pop, PAIR_BYTES);
	measure("push+pop ex, on", push_pop_ex, EX_BYTES);
	measure("push+pop 200 names, on", push_pop_many, PAIR_BYTES);
	measure("push+pop unique, on", push_pop_unique, PAIR_BYTES);
	measure("start+end, on", start_end, START_BYTES);
	measure("mark, on", mark, MARK_BYTES);
	printf("%-24s %7.2f\n", "push+pop / 2 clocks", pair / clocks);
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct lull_control control = { .sources = LULL_SOURCE_NVTX };

	if (bench_session_is_inside())
		return measure_all();
	if (argc < 2) {
		fprintf(stderr, "usage: bench_nvtx AGENT\n");
		return 2;
	}
	return bench_session_run(argv[1], &control, argv);
}
