/*
 * neighbour - another tool that uses CUPTI in the program that is recorded. It is linked with
 * libcupti and does what Kineto (torch.profiler) does, in its order: subscribe, ask for contexts,
 * register a clock and buffers, enable; and at the end disable first, then flush, and that only if
 * it has given a buffer away.
 *
 * launches loads it and calls neighbour_begin() and neighbour_end(); the latter prints one line
 * "neighbour: name=count ...".
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFER_BYTES 65536
#define N_KINDS	     64
#define CLOCK_START  5000000000u /* its clock is half as fast as the system's, from an odd start */

typedef void callback_fn(void *user, int domain, uint32_t cbid, const void *data);
typedef void request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);

int cuptiSubscribe(void **subscriber, callback_fn *callback, void *user);
int cuptiUnsubscribe(void *subscriber);
int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t cbid);
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityRegisterCallbacks(request_fn *request, complete_fn *complete);
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);

void neighbour_begin(void);
void neighbour_end(void);

static const int kinds[] = { 10, 1, 2, 38 };

static struct {
	pthread_mutex_t lock;
	void *subscriber;
	unsigned long given, completed, calls, bad_slots, bad_times, bytes;
	unsigned long records[N_KINDS];
	uint64_t start;
	int refused;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) / 2 + CLOCK_START;
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void on_call(void *user, int domain, uint32_t cbid, const void *data)
{
	uint64_t *slot;

	(void)user;
	(void)cbid;
	if (domain != 1)
		return;
	slot = (uint64_t *)(uintptr_t)load64((const uint8_t *)data + 56);
	pthread_mutex_lock(&seen.lock);
	if (*(const uint32_t *)data == 0)
		*slot = 4711;
	else
		seen.bad_slots += *slot != 4711;
	seen.calls += *(const uint32_t *)data;
	pthread_mutex_unlock(&seen.lock);
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	pthread_mutex_lock(&seen.lock);
	*buffer = malloc(BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*max_records = 0;
	seen.given++;
	pthread_mutex_unlock(&seen.lock);
}

static void on_record(const uint8_t *record)
{
	uint32_t kind;
	uint64_t begin, end;

	memcpy(&kind, record, sizeof(kind));
	seen.records[kind % N_KINDS]++;
	begin = load64(record + (kind == 38 ? 8 : 16));
	end = load64(record + (kind == 38 ? 16 : 24));
	/* A tenth of a millisecond for the translation between the clocks. */
	seen.bad_times += begin + 50000 < seen.start || end < begin || end > now() + 50000;
	if (kind == 1)
		seen.bytes += load64(record + 8);
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	pthread_mutex_lock(&seen.lock);
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == 0)
		on_record(record);
	seen.completed++;
	free(buffer);
	pthread_mutex_unlock(&seen.lock);
}

void neighbour_begin(void)
{
	int rc = cuptiSubscribe(&seen.subscriber, on_call, NULL);

	rc |= cuptiEnableCallback(1, seen.subscriber, 3, 1);
	rc |= cuptiEnableCallback(1, seen.subscriber, 1, 307); /* cuLaunchKernel */
	rc |= cuptiActivityRegisterTimestampCallback(now);
	rc |= cuptiActivityRegisterCallbacks(on_request, on_complete);
	seen.start = now();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		rc |= cuptiActivityEnable(kinds[i]);
	seen.refused = rc;
}

void neighbour_end(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cuptiActivityDisable(kinds[i]);
	if (seen.given > seen.completed)
		cuptiActivityFlushAll(1);
	cuptiUnsubscribe(seen.subscriber);
	printf("neighbour: refused=%d their_kernels=%lu their_copies=%lu their_bytes=%lu "
	       "their_sets=%lu their_waits=%lu their_calls=%lu bad_slots=%lu bad_times=%lu\n",
	       seen.refused, seen.records[10], seen.records[1], seen.bytes, seen.records[2],
	       seen.records[38], seen.calls, seen.bad_slots, seen.bad_times);
}
