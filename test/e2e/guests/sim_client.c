/*
 * sim_client - a small user of CUPTI, loaded as CUDA_INJECTION64_PATH asks for. At exit it prints
 * one line "client: name=count ..." about what it was told, to compare with what launches says.
 *
 * Its clock counts in units of 3 ns from an odd start, so that a forgotten translation shows.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFER_BYTES 16384
#define CLOCK_UNIT   3
#define CLOCK_START  1000000007u
#define N_KINDS	     64

#define CUPTI_CALLS(CALL)                                                                      \
	CALL(cuptiGetVersion, (uint32_t *))                                                    \
	CALL(cuptiSubscribe, (void **, void (*)(void *, int, uint32_t, const void *), void *)) \
	CALL(cuptiEnableDomain, (uint32_t, void *, int))                                       \
	CALL(cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                      \
	CALL(cuptiActivityRegisterCallbacks,                                                   \
	     (void (*)(uint8_t **, size_t *, size_t *),                                        \
	      void (*)(void *, uint32_t, uint8_t *, size_t, size_t)))                          \
	CALL(cuptiActivityEnable, (int))                                                       \
	CALL(cuptiActivityEnableAndDump, (int))                                                \
	CALL(cuptiActivityFlushAll, (uint32_t))                                                \
	CALL(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))                      \
	CALL(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))

static struct {
#define CALL(name, params) int(*name) params;
	CUPTI_CALLS(CALL)
#undef CALL
} cupti;

static struct {
	_Atomic unsigned long enters, exits, launches, bad_slots;
	_Atomic unsigned long records[N_KINDS];
	_Atomic unsigned long copy_bytes, set_bytes, bad_times, no_times, graph_kernels;
	uint32_t version;
	int second; /* what a second subscriber is told */
	uint64_t start;
	void *subscriber;
} seen;

int InitializeInjection(void);

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) / CLOCK_UNIT + CLOCK_START;
}

static uint32_t load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* CLIENT_STOPS: callbacks are switched off in the middle of the first launch. */
static int is_to_stop(const uint8_t *at)
{
	return getenv("CLIENT_STOPS") &&
	       strcmp((const char *)(uintptr_t)load64(at + 8), "cuLaunchKernel") == 0;
}

/* Offsets are those of CUpti_CallbackData. The slot must be the same at both ends of a call. */
static void on_call(void *userdata, int domain, uint32_t cbid, const void *data)
{
	const uint8_t *at = data;
	uint64_t *slot = (uint64_t *)(uintptr_t)load64(at + 56);
	uint32_t correlation = load32(at + 64);

	(void)userdata;
	(void)domain;
	(void)cbid;
	if (load32(at) == 0) {
		seen.enters++;
		*slot = correlation;
		if (is_to_stop(at))
			cupti.cuptiEnableDomain(0, seen.subscriber, 1);
		return;
	}
	seen.exits++;
	seen.bad_slots += *slot != correlation || *(int *)(uintptr_t)load64(at + 24) != 0;
	seen.launches += strcmp((const char *)(uintptr_t)load64(at + 8), "cuLaunchKernel") == 0;
}

static void check_times(const uint8_t *at)
{
	uint64_t start = load64(at), end = load64(at + 8);

	if (!start && !end)
		seen.no_times++;
	else if (start < seen.start || end < start || end > now())
		seen.bad_times++;
}

static void on_record(const uint8_t *at)
{
	uint32_t kind = load32(at);

	seen.records[kind % N_KINDS]++;
	if (kind == 1 || kind == 2 || kind == 10)
		check_times(at + 16);
	if (kind == 38 || kind == 51)
		check_times(at + 8);
	if (kind == 1)
		seen.copy_bytes += load64(at + 8);
	if (kind == 2)
		seen.set_bytes += load64(at + 8);
	if (kind == 10)
		seen.graph_kernels += load32(at + 156) != 0;
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = malloc(BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*max_records = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == 0)
		on_record(record);
	free(buffer);
}

static void report(void)
{
	size_t n_dropped = 0;

	cupti.cuptiActivityFlushAll(0);
	cupti.cuptiActivityFlushAll(1);
	cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &n_dropped);
	printf("client: version=%u second=%d enters=%lu exits=%lu called_launch=%lu bad_slots=%lu ",
	       seen.version, seen.second, seen.enters, seen.exits, seen.launches, seen.bad_slots);
	printf("kernel_records=%lu of_graphs=%lu copies=%lu bytes_copied=%lu memsets=%lu "
	       "bytes_set=%lu ",
	       seen.records[10], seen.graph_kernels, seen.records[1], seen.copy_bytes,
	       seen.records[2], seen.set_bytes);
	printf("waits=%lu graph_records=%lu devices=%lu contexts=%lu streams=%lu overheads=%lu ",
	       seen.records[38], seen.records[51], seen.records[8], seen.records[9],
	       seen.records[37], seen.records[17]);
	printf("bad_times=%lu no_times=%lu dropped=%zu\n", seen.bad_times, seen.no_times,
	       n_dropped);
}

/* Kinds: all, with graphs as a whole only if CLIENT_GRAPHS is set. */
static void enable(void)
{
	static const int kinds[] = { 10, 1, 2, 38, 17 };
	static const int dumped[] = { 8, 9, 37 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cupti.cuptiActivityEnable(kinds[i]);
	for (size_t i = 0; i < sizeof(dumped) / sizeof(dumped[0]); i++)
		cupti.cuptiActivityEnableAndDump(dumped[i]);
	if (getenv("CLIENT_GRAPHS"))
		cupti.cuptiActivityEnable(51);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	void *second;

#define CALL(name, params)                                              \
	*(void **)&cupti.name = library ? dlsym(library, #name) : NULL; \
	if (!cupti.name)                                                \
		return 0;
	CUPTI_CALLS(CALL)
#undef CALL
	seen.start = now();
	cupti.cuptiGetVersion(&seen.version);
	if (cupti.cuptiSubscribe(&seen.subscriber, on_call, NULL) != 0) {
		puts("client: refused=1");
		return 0;
	}
	seen.second = cupti.cuptiSubscribe(&second, on_call, NULL);
	cupti.cuptiActivityRegisterTimestampCallback(now);
	cupti.cuptiActivityRegisterCallbacks(on_request, on_complete);
	enable();
	cupti.cuptiEnableDomain(1, seen.subscriber, 1);
	atexit(report);
	return 1;
}
