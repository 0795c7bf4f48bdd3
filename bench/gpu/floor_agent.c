/*
 * floor_agent - the least that a recording of kernels can cost: a library for CUDA_INJECTION64_PATH
 * that enables CUPTI's kernel records and drops them. What lull costs is measured beside it.
 *
 * FLOOR_WITH=WORD,... adds one thing at a time, to find out what costs; floor_switch("WORD,...")
 * does so while the program runs, "off" ends all, and "finalize" sends CUPTI away. It can also be
 * loaded into a program that lull records, and take turns with it: floor_is_alone() tells whether
 * lull has left CUPTI.
 *
 *	kinds	  copies, memsets, overheads, compilation; kN: the kind of that number
 *	graph	  graphs as a whole
 *	clock	  times by the CPU's counter instead of CUPTI's clock
 *	zeroed	  buffers are zeroed by us, not by CUPTI on the launching thread
 *	launch	  callbacks for cuLaunchKernel and cudaLaunchKernel, which do nothing
 *	calls	  callbacks for all calls that lull watches by default
 *	runtime	  either of them without the driver's
 *	none	  no records of kernels
 *	flush	  cuptiActivityFlushAll(0) every 200 ms
 *	walk	  records are walked and counted, not only dropped
 *	small	  buffers of 64 KiB instead of 1 MiB
 *
 * At exit it says on stderr how many kernels it saw, and how many buffers came before the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define KIND_KERNEL 10
#define KIND_SYNC   38
#define KIND_GRAPH  51
#define N_CBIDS	    1024u

#define CUPTI_CALLS(CALL)                                                                      \
	CALL(cuptiActivityRegisterCallbacks,                                                   \
	     (void (*)(uint8_t **, size_t *, size_t *),                                        \
	      void (*)(void *, uint32_t, uint8_t *, size_t, size_t)))                          \
	CALL(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                      \
	CALL(cuptiActivitySetAttribute, (int, size_t *, void *))                               \
	CALL(cuptiActivityEnable, (int))                                                       \
	CALL(cuptiActivityDisable, (int))                                                      \
	CALL(cuptiActivityFlushAll, (uint32_t))                                                \
	CALL(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))                      \
	CALL(cuptiUnsubscribe, (void *))                                                       \
	CALL(cuptiSubscribe, (void **, void (*)(void *, int, uint32_t, const void *), void *)) \
	CALL(cuptiEnableCallback, (uint32_t, void *, int, uint32_t))                           \
	CALL(cuptiGetCallbackName, (int, uint32_t, const char **))

static struct {
#define CALL(name, params) int(*name) params;
	CUPTI_CALLS(CALL)
#undef CALL
} cupti;

/* Copies (two), memsets, waits, overheads, compilation. */
static const int kinds[] = { 1, 22, 2, KIND_SYNC, 17, 52 };
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static _Atomic unsigned long n_kernels, n_buffers, n_calls;
static size_t buffer_bytes = 1u << 20;
static int is_zeroed, is_walking, is_clock_ours, is_finalized = 1;
static const char *list;
static void *subscriber, *library;

int InitializeInjection(void);
int floor_switch(const char *words);
int floor_is_alone(void);

static int has(const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n]))
			return 1;
	return 0;
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = is_zeroed ? calloc(1, buffer_bytes) : malloc(buffer_bytes);
	*size = buffer_bytes;
	*max_records = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	n_buffers++;
	while (is_walking && cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == 0)
		n_kernels += *(const uint32_t *)record == KIND_KERNEL;
	free(buffer);
}

static uint64_t counter(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#endif
}

static void on_call(void *user, int domain, uint32_t cbid, const void *data)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)data;
	atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
}

/* Calls whose name begins with one of the words, in both domains (or the runtime's alone). */
static void watch(const char *const *words, size_t n_words)
{
	const char *name;

	if (!subscriber && cupti.cuptiSubscribe(&subscriber, on_call, NULL) != 0) {
		fprintf(stderr, "floor_agent: somebody else holds CUPTI\n");
		return;
	}
	for (int domain = has("runtime") ? 2 : 1; domain <= 2; domain++)
		for (uint32_t cbid = 1; cbid < N_CBIDS; cbid++)
			for (size_t i = 0; i < n_words; i++)
				if (cupti.cuptiGetCallbackName(domain, cbid, &name) == 0 && name &&
				    strncmp(name, words[i], strlen(words[i])) == 0)
					cupti.cuptiEnableCallback(1, subscriber, domain, cbid);
}

static void watch_none(void)
{
	for (int domain = 1; subscriber && domain <= 2; domain++)
		for (uint32_t cbid = 1; cbid < N_CBIDS; cbid++)
			cupti.cuptiEnableCallback(0, subscriber, domain, cbid);
}

static void *flush_loop(void *unused)
{
	struct timespec pause = { 0, 200000000 };

	for (;;) {
		nanosleep(&pause, NULL);
		cupti.cuptiActivityFlushAll(0);
	}
	return unused;
}

static void report(void)
{
	unsigned long before = n_buffers;

	if (!is_finalized)
		cupti.cuptiActivityFlushAll(1);
	fprintf(stderr, "floor_agent: records=%lu buffers=%lu before_end=%lu calls=%lu\n",
		n_kernels, (unsigned long)n_buffers, before, n_calls);
}

static void switch_on(void)
{
	static const char *const launches[] = { "cudaLaunchKernel", "cuLaunchKernel" };
	static const char *const calls[] = {
		"cudaLaunch",	  "cudaMemcpy",	     "cudaMemset",    "cudaMalloc",
		"cudaFree",	  "cudaEventRec",    "cudaEventSync", "cudaStreamSync",
		"cudaDeviceSync", "cudaGraphLaunch", "cuLaunch",      "cuMemcpy",
		"cuMemset",	  "cuMemAlloc",	     "cuMemFree",     "cuEventRec",
		"cuEventSync",	  "cuStreamSync",    "cuStreamWait",  "cuCtxSync",
		"cuGraphLaunch",  "cuModuleLoad",
	};

	if (!has("none"))
		cupti.cuptiActivityEnable(KIND_KERNEL);
	for (size_t i = 0; i < N_KINDS; i++) {
		char word[8];

		snprintf(word, sizeof(word), "k%d", kinds[i]);
		if ((has("kinds") && kinds[i] != KIND_SYNC) || has(word))
			cupti.cuptiActivityEnable(kinds[i]);
	}
	if (has("graph"))
		cupti.cuptiActivityEnable(KIND_GRAPH);
	if (has("launch"))
		watch(launches, sizeof(launches) / sizeof(launches[0]));
	else if (has("calls"))
		watch(calls, sizeof(calls) / sizeof(calls[0]));
}

static void switch_off(void)
{
	watch_none();
	cupti.cuptiActivityDisable(KIND_KERNEL);
	cupti.cuptiActivityDisable(KIND_GRAPH);
	for (size_t i = 0; i < N_KINDS; i++)
		cupti.cuptiActivityDisable(kinds[i]);
}

static void set_up(void)
{
	size_t size = 1;
	uint8_t on = 1;

	is_zeroed = has("zeroed");
	is_walking = has("walk");
	is_clock_ours = has("clock");
	buffer_bytes = has("small") ? 65536 : 1u << 20;
	if (is_clock_ours)
		cupti.cuptiActivityRegisterTimestampCallback(counter);
	if (is_zeroed)
		cupti.cuptiActivitySetAttribute(5, &size, &on);
	cupti.cuptiActivityRegisterCallbacks(on_request, on_complete);
}

static void finalize(void)
{
	int (*leave)(void);

	cupti.cuptiActivityFlushAll(1);
	if (subscriber)
		cupti.cuptiUnsubscribe(subscriber);
	subscriber = NULL;
	*(void **)&leave = dlsym(library, "cuptiFinalize");
	if (leave)
		leave();
	is_finalized = 1;
}

static int load(void)
{
	const char *path = getenv("FLOOR_CUPTI");

	if (library)
		return 0;
	library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
#define CALL(name, params)                                                       \
	*(void **)&cupti.name = library ? dlsym(library, #name) : NULL;          \
	if (!cupti.name) {                                                       \
		fprintf(stderr, "floor_agent: no " #name "; set FLOOR_CUPTI\n"); \
		return -1;                                                       \
	}
	CUPTI_CALLS(CALL)
#undef CALL
	return 0;
}

__attribute__((visibility("default"))) int floor_switch(const char *words)
{
	if (load() != 0)
		return -1;
	list = words;
	if (!is_finalized)
		switch_off();
	if (has("finalize") && !is_finalized)
		finalize();
	if (!has("off") && !has("finalize")) {
		if (is_finalized)
			set_up();
		is_finalized = 0;
		switch_on();
	}
	if (!is_finalized)
		cupti.cuptiActivityFlushAll(0);
	list = NULL;
	return 0;
}

/* Whether nobody holds CUPTI; it is sent away again, for asking has brought it in. */
__attribute__((visibility("default"))) int floor_is_alone(void)
{
	if (load() != 0 || cupti.cuptiSubscribe(&subscriber, on_call, NULL) != 0) {
		subscriber = NULL;
		return 0;
	}
	finalize();
	return 1;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *words = getenv("FLOOR_WITH");
	pthread_t thread;

	if (floor_switch(words) != 0)
		return 1;
	list = words;
	if (has("flush"))
		pthread_create(&thread, NULL, flush_loop, NULL);
	list = NULL;
	atexit(report);
	return 1;
}
