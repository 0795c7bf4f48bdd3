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

/*
 * The thread that flushes looks into them (lull_cuda_take_finished()), and meanwhile CUPTI may give
 * one back on another thread. Nobody waits then: CUPTI may hold a lock that the look needs, too. It
 * leaves what it gave back to the one who looks.
 */
enum { OUT_CALM, OUT_LOOKED_AT, OUT_GIVEN_BACK };

static struct out {
	_Atomic(u8 *) buffer;
	_Atomic u32 state; /* OUT_* */
	void *record;	   /* of the one who looks: the last one that was taken; NULL for none */
	struct back {
		void *context;
		u32 stream;
		u8 *buffer;
		size_t size_bytes, valid_bytes;
	} back; /* of OUT_GIVEN_BACK */
} out[N_OUT];

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

static void add_out(u8 *buffer)
{
	for (u32 i = 0; i < N_OUT; i++) {
		u8 *none = NULL;

		if (!atomic_load_explicit(&out[i].buffer, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&out[i].buffer, &none, buffer))
			return;
	}
}

/* Their first word is the kind of the first record, and 0 as we give them away. */
u32 lull_cuda_n_held(void)
{
	u32 n = 0;

	for (u32 i = 0; i < N_OUT; i++) {
		const u8 *buffer = atomic_load(&out[i].buffer);

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
		add_out(*buffer);
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

/* All behind `record` into events, and the buffer into the pool. */
static void take_back(const struct back *b, void *record)
{
	if (b->valid_bytes > BUFFER_BYTES / 4 * 3)
		atomic_fetch_add_explicit(&n_full, 1, memory_order_relaxed);
	lull_cuda_walk(b->buffer, b->valid_bytes, &record, false);
	lull_cuda_share_buffer(b->context, b->stream, b->buffer, b->valid_bytes);
	count_dropped(b->context, b->stream);
	memset(b->buffer, 0, b->size_bytes < BUFFER_BYTES ? b->size_bytes : BUFFER_BYTES);
	put_free(b->buffer);
}

/* The place is free; the last record that was taken. */
static void *remove_out(struct out *o)
{
	void *record = o->record;

	o->record = NULL;
	atomic_store(&o->buffer, NULL);
	atomic_store(&o->state, OUT_CALM);
	return record;
}

static struct out *find_out(const u8 *buffer)
{
	for (u32 i = 0; i < N_OUT; i++)
		if (atomic_load_explicit(&out[i].buffer, memory_order_relaxed) == buffer)
			return &out[i];
	return NULL;
}

static bool look_at(struct out *o)
{
	u32 calm = OUT_CALM;

	return atomic_compare_exchange_strong(&o->state, &calm, OUT_LOOKED_AT);
}

/* True if somebody looks at it, who takes it then. */
static bool leave_back(struct out *o, const struct back *b)
{
	u32 looked_at = OUT_LOOKED_AT;

	o->back = *b;
	return atomic_compare_exchange_strong(&o->state, &looked_at, OUT_GIVEN_BACK);
}

void lull_cuda_completed(void *context, u32 stream, u8 *buffer, size_t size_bytes,
			 size_t valid_bytes)
{
	struct back b = { context, stream, buffer, size_bytes, valid_bytes };
	int saved = errno;
	struct out *o;

	if (!buffer)
		return;
	o = find_out(buffer);
	while (o && !look_at(o))
		if (leave_back(o, &b))
			return;
	take_back(&b, o ? remove_out(o) : NULL);
	errno = saved;
}

void lull_cuda_take_finished(void)
{
	/* Another tool gets its records when its flush returns, and not from us behind that. */
	for (u32 i = 0; i < N_OUT && !lull_cuda_share_is_used(); i++) {
		struct out *o = &out[i];
		u32 looked_at = OUT_LOOKED_AT;
		u8 *buffer;

		if (!atomic_load_explicit(&o->buffer, memory_order_relaxed) || !look_at(o))
			continue;
		buffer = atomic_load(&o->buffer);
		if (buffer)
			lull_cuda_walk(buffer, BUFFER_BYTES, &o->record, true);
		if (!atomic_compare_exchange_strong(&o->state, &looked_at, OUT_CALM)) {
			struct back b = o->back;

			take_back(&b, remove_out(o));
		}
	}
}
