/*
 * cuda_buffers - the room for CUPTI's activity records.
 *
 * CUPTI asks for buffers on the threads of the program and gives them back on a thread of its own,
 * or on ours when we flush. Buffers come from a pool that never shrinks: a lock-free stack of
 * mappings. They are zeroed when they come back, because CUPTI would otherwise do it when it takes
 * them, in the middle of a launch.
 */
#include <sys/mman.h>

#include "agent/cuda.h"
#include "agent/lib_cupti.h"
#include "agent/sys.h"

/*
 * 256 KiB, about 1,200 kernels: measured no worse than larger ones, and a program that launches
 * much fills them so often that nobody has to flush.
 */
#define BUFFER_BYTES (256u << 10)

/* Buffers that are made ahead of time; threads may ask at once. */
#define N_STOCK 4u

/* The pool; a buffer that is free is zero but for the address of the next one at its begin. */
static _Atomic(u8 *) free_buffers;
static _Atomic u32 n_free;

/* Those that CUPTI has; what finds no place here is not looked into. */
#define N_OUT 256u
static _Atomic(u8 *) out[N_OUT];

/* Buffers that came back because they were full. */
static _Atomic u32 n_full;

/*
 * Taking from a lock-free stack is safe only if no buffer can be taken and put back meanwhile; this
 * flag makes takers exclusive. Who finds it set takes fresh memory instead of waiting.
 */
static atomic_flag is_taking = ATOMIC_FLAG_INIT;

static u8 *take_free(void)
{
	u8 *head, *next;

	if (atomic_flag_test_and_set_explicit(&is_taking, memory_order_acquire))
		return NULL;
	head = atomic_load_explicit(&free_buffers, memory_order_acquire);
	while (head) {
		memcpy(&next, head, sizeof(next));
		if (atomic_compare_exchange_weak_explicit(
			    &free_buffers, &head, next, memory_order_acquire, memory_order_acquire))
			break;
	}
	atomic_flag_clear_explicit(&is_taking, memory_order_release);
	if (head) {
		next = NULL; /* the link was the only thing in it that is not zero */
		memcpy(head, &next, sizeof(next));
		atomic_fetch_sub_explicit(&n_free, 1, memory_order_relaxed);
	}
	return head;
}

static void put_free(u8 *buffer)
{
	u8 *head = atomic_load_explicit(&free_buffers, memory_order_relaxed);

	do
		memcpy(buffer, &head, sizeof(head));
	while (!atomic_compare_exchange_weak_explicit(&free_buffers, &head, buffer,
						      memory_order_release, memory_order_relaxed));
	atomic_fetch_add_explicit(&n_free, 1, memory_order_relaxed);
}

static void exchange_out(u8 *from, u8 *to)
{
	for (u32 i = 0; i < N_OUT; i++) {
		u8 *present = from;

		if (atomic_load_explicit(&out[i], memory_order_relaxed) == from &&
		    atomic_compare_exchange_strong(&out[i], &present, to))
			return;
	}
}

/* Their first word is the kind of the first record, and 0 as we give them away. */
u32 lull_cuda_n_held(void)
{
	u32 n = 0;

	for (u32 i = 0; i < N_OUT; i++) {
		const u8 *buffer = atomic_load(&out[i]);

		n += buffer && __atomic_load_n((const u32 *)buffer, __ATOMIC_RELAXED) != 0;
	}
	return n;
}

static u8 *make_buffer(int flags)
{
	return lull_sys_map(BUFFER_BYTES, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1);
}

void lull_cuda_stock(void)
{
	while (atomic_load_explicit(&n_free, memory_order_relaxed) < N_STOCK) {
		u8 *buffer = make_buffer(MAP_POPULATE);

		if (!buffer)
			return;
		put_free(buffer);
	}
}

void lull_cuda_zeroed(void)
{
	size_t size_bytes = 1;
	u8 is_zeroed = 1;

	if (lull_cupti.cuptiActivitySetAttribute)
		lull_cupti.cuptiActivitySetAttribute(LULL_CUPTI_ATTR_ZEROED, &size_bytes,
						     &is_zeroed);
}

void lull_cuda_requested(u8 **buffer, size_t *size_bytes, size_t *max_records)
{
	int saved = errno;

	*buffer = take_free();
	if (!*buffer)
		*buffer = make_buffer(0);
	/*
	 * Without a buffer CUPTI counts what it has to drop; older versions did not take NULL well.
	 */
	*size_bytes = *buffer ? BUFFER_BYTES : 0;
	*max_records = 0;
	if (*buffer)
		exchange_out(NULL, *buffer);
	errno = saved;
}

/* Records of what was dropped; per context, asked for whenever a buffer comes back. */
static void count_dropped(void *context, u32 stream)
{
	size_t n = 0;

	if (lull_cupti.cuptiActivityGetNumDroppedRecords &&
	    lull_cupti.cuptiActivityGetNumDroppedRecords(context, stream, &n) == 0 && n) {
		lull_issue(LULL_ISSUE_cupti_dropped, n);
		lull_cuda_share_dropped(n);
	}
}

u32 lull_cuda_n_full(void)
{
	return atomic_load_explicit(&n_full, memory_order_relaxed);
}

void lull_cuda_completed(void *context, u32 stream, u8 *buffer, size_t size_bytes,
			 size_t valid_bytes)
{
	int saved = errno;

	if (!buffer)
		return;
	exchange_out(buffer, NULL);
	if (valid_bytes > BUFFER_BYTES / 4 * 3)
		atomic_fetch_add_explicit(&n_full, 1, memory_order_relaxed);
	lull_cuda_walk(buffer, valid_bytes);
	lull_cuda_share_buffer(context, stream, buffer, valid_bytes);
	count_dropped(context, stream);
	memset(buffer, 0, size_bytes < BUFFER_BYTES ? size_bytes : BUFFER_BYTES);
	put_free(buffer);
	errno = saved;
}
