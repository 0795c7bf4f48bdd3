/*
 * floor_agent - the least that a recording of kernels can cost: a library for CUDA_INJECTION64_PATH
 * that enables CUPTI's kernel records and drops them. What lull costs is measured beside it.
 *
 * FLOOR_WITH=WORD,... adds one thing at a time, to find out what costs:
 *
 *	kinds	  copies, memsets, waits, overheads, compilation
 *	graph	  graphs as a whole
 *	clock	  times by the CPU's counter instead of CUPTI's clock
 *	zeroed	  buffers are zeroed by us, not by CUPTI on the launching thread
 *	launch	  callbacks for cuLaunchKernel and cudaLaunchKernel, which do nothing
 *	calls	  callbacks for all calls that lull watches by default
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
#define N_CBIDS	    1024u

#define CUPTI_CALLS(CALL)                                                                      \
	CALL(cuptiActivityRegisterCallbacks,                                                   \
	     (void (*)(uint8_t **, size_t *, size_t *),                                        \
	      void (*)(void *, uint32_t, uint8_t *, size_t, size_t)))                          \
	CALL(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                      \
	CALL(cuptiActivitySetAttribute, (int, size_t *, void *))                               \
	CALL(cuptiActivityEnable, (int))                                                       \
	CALL(cuptiActivityFlushAll, (uint32_t))                                                \
	CALL(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))                      \
	CALL(cuptiSubscribe, (void **, void (*)(void *, int, uint32_t, const void *), void *)) \
	CALL(cuptiEnableCallback, (uint32_t, void *, int, uint32_t))                           \
	CALL(cuptiGetCallbackName, (int, uint32_t, const char **))

static struct {
#define CALL(name, params) int(*name) params;
	CUPTI_CALLS(CALL)
#undef CALL
} cupti;

static _Atomic unsigned long n_kernels, n_buffers, n_calls;
static size_t buffer_bytes = 1u << 20;
static int is_zeroed, is_walking;

int InitializeInjection(void);

static int has(const char *word)
{
	const char *list = getenv("FLOOR_WITH");
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
	void *subscriber;

	if (cupti.cuptiSubscribe(&subscriber, on_call, NULL) != 0) {
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

	cupti.cuptiActivityFlushAll(1);
	fprintf(stderr, "floor_agent: records=%lu buffers=%lu before_end=%lu calls=%lu\n",
		n_kernels, (unsigned long)n_buffers, before, n_calls);
}

static void add_what_is_wanted(void)
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
	static const int kinds[] = { 1, 22, 2, 38, 17, 52 };
	pthread_t thread;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char word[8];

		snprintf(word, sizeof(word), "k%d", kinds[i]);
		if (has("kinds") || has(word))
			cupti.cuptiActivityEnable(kinds[i]);
	}
	if (has("graph"))
		cupti.cuptiActivityEnable(51);
	if (has("launch"))
		watch(launches, sizeof(launches) / sizeof(launches[0]));
	else if (has("calls"))
		watch(calls, sizeof(calls) / sizeof(calls[0]));
	if (has("flush"))
		pthread_create(&thread, NULL, flush_loop, NULL);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *path = getenv("FLOOR_CUPTI");
	void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	size_t size = 1;
	uint8_t on = 1;

#define CALL(name, params)                                                       \
	*(void **)&cupti.name = library ? dlsym(library, #name) : NULL;          \
	if (!cupti.name) {                                                       \
		fprintf(stderr, "floor_agent: no " #name "; set FLOOR_CUPTI\n"); \
		return 1;                                                        \
	}
	CUPTI_CALLS(CALL)
#undef CALL
	is_zeroed = has("zeroed");
	is_walking = has("walk");
	if (has("small"))
		buffer_bytes = 65536;
	if (has("clock"))
		cupti.cuptiActivityRegisterTimestampCallback(counter);
	if (is_zeroed)
		cupti.cuptiActivitySetAttribute(5, &size, &on);
	cupti.cuptiActivityRegisterCallbacks(on_request, on_complete);
	cupti.cuptiActivityEnable(KIND_KERNEL);
	add_what_is_wanted();
	atexit(report);
	return 1;
}
