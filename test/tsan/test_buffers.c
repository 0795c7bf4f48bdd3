/*
 * The buffers for CUPTI's records under ThreadSanitizer: threads ask for them, fill them, finish
 * the work in them and give them back, or leave that to another one, while a thread that flushes
 * takes what is finished out of those that it finds.
 *
 * CUPTI is a stand-in that marks unfinished records as the real one does. Every record has a number
 * of its own; at the end each must have been taken once, and no buffer may be out.
 *
 *	test_buffers [SECONDS]
 *
 * It goes on for so long, and until some records were taken early.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/cuda/cuda.h"
#include "agent/core/sys.h"

#include "../support/patience.h"

#define N_PRODUCERS 6
#define MAX_RECORDS (1u << 22)
#define MIN_EARLY   100u /* records that were taken before their buffer came back */

/* No more than this between two rounds of the thread that flushes, which may wait for its CPU. */
#define ROUND_RECORDS 20000u
#define UNFINISHED    0x80000000u

struct record {
	u32 kind, number;
	u64 end;
};

static struct lull_control control = { .magic = LULL_WIRE_MAGIC };
static struct lull_image image;

struct lull_real lull_real = { .syscall = syscall };
struct lull_agent lull_agent = { .control = &control, .image = &image };
struct lull_cupti lull_cupti = { .version = 130000 };

static _Atomic u8 n_taken[MAX_RECORDS];
static _Atomic u32 n_records, n_early, n_bad, n_rounds, is_over;

/* As cuda_records.c does it. */
void lull_cuda_walk(u8 *buffer, size_t valid_bytes, void **last_record, bool is_held)
{
	struct record *r = *last_record ? (struct record *)*last_record + 1 : (void *)buffer;

	for (; (u8 *)(r + 1) <= buffer + valid_bytes; r++) {
		u32 kind = __atomic_load_n(&r->kind, __ATOMIC_ACQUIRE);

		if (kind != LULL_CUPTI_KIND_KERNEL) {
			n_bad += !is_held;
			return;
		}
		n_bad += r->end != r->number + 1u;
		n_taken[r->number]++;
		n_early += is_held;
		*last_record = r;
	}
}

bool lull_cuda_share_is_used(void)
{
	return false;
}

void lull_cuda_share_buffer(void *context, u32 stream, u8 *buffer, size_t valid_bytes)
{
	(void)context;
	(void)stream;
	(void)buffer;
	(void)valid_bytes;
}

void lull_cuda_share_dropped(u64 n)
{
	(void)n;
}

/* One buffer of a producer, from the request to its return. */
static void fill_one(u32 *seed)
{
	size_t size_bytes, max_records;
	struct record *r;
	u8 *buffer;
	u32 n;

	lull_cuda_requested(&buffer, &size_bytes, &max_records);
	if (!buffer)
		abort();
	*seed = *seed * 1664525u + 1013904223u;
	n = 1 + (*seed >> 16) % 200;
	r = (struct record *)buffer;
	for (u32 i = 0; i < n; i++) {
		r[i].number = atomic_fetch_add(&n_records, 1);
		if (r[i].number >= MAX_RECORDS)
			abort();
		__atomic_store_n(&r[i].kind, LULL_CUPTI_KIND_KERNEL | UNFINISHED, __ATOMIC_RELEASE);
	}
	for (u32 i = 0; i < n; i++) {
		r[i].end = r[i].number + 1u;
		__atomic_store_n(&r[i].kind, LULL_CUPTI_KIND_KERNEL, __ATOMIC_RELEASE);
		if (i % 32 == 0)
			sched_yield();
	}
	lull_cuda_completed(NULL, 0, buffer, size_bytes, n * sizeof(*r));
}

static void *produce(void *seed)
{
	while (!atomic_load(&is_over) && atomic_load(&n_records) < MAX_RECORDS - 100000) {
		if (atomic_load(&n_records) / ROUND_RECORDS > atomic_load(&n_rounds))
			sched_yield();
		else
			fill_one(seed);
	}
	return NULL;
}

static void *flush(void *unused)
{
	while (!atomic_load(&is_over)) {
		lull_cuda_mark_held();
		lull_cuda_take_finished();
		lull_cuda_stock();
		atomic_fetch_add(&n_rounds, 1);
	}
	return unused;
}

int main(int argc, char **argv)
{
	u64 until_ns = lull_now_ns() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 3) * LULL_NS_PER_S;
	u64 end_ns = test_patience_end_ns();
	pthread_t producers[N_PRODUCERS], flusher;
	u32 seeds[N_PRODUCERS], n_wrong = 0;

	pthread_create(&flusher, NULL, flush, NULL);
	for (u32 i = 0; i < N_PRODUCERS; i++) {
		seeds[i] = i + 1;
		pthread_create(&producers[i], NULL, produce, &seeds[i]);
	}
	while ((lull_now_ns() < until_ns || atomic_load(&n_early) < MIN_EARLY) &&
	       test_patience_pause(end_ns))
		continue;
	atomic_store(&is_over, 1);
	for (u32 i = 0; i < N_PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	pthread_join(flusher, NULL);
	/* What was left to one who looked is in by now, as it took it before it ended. */
	for (u32 i = 0; i < n_records; i++)
		n_wrong += n_taken[i] != 1;
	printf("test_buffers: %u records, %u of them early\n", n_records, n_early);
	if (n_wrong || n_bad || lull_cuda_n_held() || n_early < MIN_EARLY) {
		printf("FAIL: %u not taken once, %u broken, %u buffers out, %u early\n", n_wrong,
		       n_bad, lull_cuda_n_held(), n_early);
		return 1;
	}
	return 0;
}
