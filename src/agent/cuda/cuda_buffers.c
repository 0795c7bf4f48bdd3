/*
 * cuda_buffers - buffers for CUPTI's activity records.
 *
 * CUPTI requests buffers on the threads of the program and returns them on its own thread, or on
 * the agent's thread when that flushes. Buffers come from a pool that never shrinks: a lock-free
 * stack of mappings. They are zeroed when they are returned, because CUPTI would otherwise do it
 * when it requests them, in the middle of a launch.
 */
#include <sys/mman.h>

#include "agent/cuda/cuda.h"
#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"

/*
 * 256 KiB, about 1,200 kernels: measured no worse than larger ones, and a program that launches
 * much fills them so often that nobody has to flush.
 */
#define BUFFER_BYTES (256u << 10)

/* Buffers that are made ahead of time; threads may ask at once. */
#define N_STOCK 4u

/* The pool; a buffer that is free is zero but for the address of the next one at its start. */
static _Atomic(u8 *) free_buffers;
static _Atomic u32 n_free;

/*
 * From this version of CUPTI on (13.0) it is known what stands in buffers that it has: records of
 * unfinished work are marked, and a flush takes the mark off, in their order.
 */
#define TELLS_FINISHED 130000u

/* Those that CUPTI has; what finds no place here is not looked into. */
#define N_OUT 256u

/*
 * The thread that flushes looks into them (lull_cuda_take_finished()), and meanwhile CUPTI may give
 * one back on another thread. Nobody waits then: CUPTI may hold a lock that the look needs, too. It
 * leaves what it gave back to the one who looks.
 *
 * All that is said of a place is in one word: the buffer, which lies on a page, the low bits of the
 * number of times that one was given away, and who is at it. 0: the place is free.
 */
enum { OUT_CALM, OUT_LOOKED_AT, OUT_GIVEN_BACK };
#define OUT_STATE  3u
#define OUT_BUFFER (~(u64)4095)

static struct out {
	_Atomic u64 word;
	u64 marked;   /* of the thread that flushes: the word at its last mark */
	void *record; /* of the one who is at it: the last one that was taken; NULL for none */
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
	static _Atomic u64 n_given;
	u64 number = atomic_fetch_add_explicit(&n_given, 1, memory_order_relaxed);

	for (u32 i = 0; i < N_OUT; i++) {
		u64 none = 0;

		if (!atomic_load_explicit(&out[i].word, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&out[i].word, &none,
						   (u64)buffer | (number << 2 & ~OUT_BUFFER)))
			return;
	}
}

/*
 * Their first word is the kind of the first record, and 0 as we give them away. A hint: it may have
 * come back by now, and be another's.
 */
static __attribute__((noinline, no_sanitize_thread)) bool has_records(u64 word)
{
	const u32 *buffer = (const u32 *)(word & OUT_BUFFER);

	return buffer && __atomic_load_n(buffer, __ATOMIC_RELAXED) != 0;
}

u32 lull_cuda_n_held(void)
{
	u32 n = 0;

	for (u32 i = 0; i < N_OUT; i++)
		n += has_records(atomic_load(&out[i].word));
	return n;
}

/* Only calm ones: what is looked at has been seen, what is given back is not CUPTI's any more. */
bool lull_cuda_mark_held(void)
{
	bool has_old = false;

	for (u32 i = 0; i < N_OUT; i++) {
		u64 word = atomic_load(&out[i].word);

		has_old |= word && word == out[i].marked && has_records(word);
		out[i].marked = word & OUT_STATE ? 0 : word;
	}
	return has_old;
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

/* All after `record` into events, and the buffer into the pool. */
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

/* The place is free from here on; the last record that was taken. */
static void *remove_out(struct out *o)
{
	void *record = o->record;

	o->record = NULL;
	atomic_store(&o->word, 0);
	return record;
}

static struct out *find_out(const u8 *buffer)
{
	for (u32 i = 0; i < N_OUT; i++)
		if ((atomic_load_explicit(&out[i].word, memory_order_relaxed) & OUT_BUFFER) ==
		    (u64)buffer)
			return &out[i];
	return NULL;
}

static bool turns(struct out *o, u64 calm, u64 from, u64 to)
{
	u64 present = calm | from;

	return atomic_compare_exchange_strong(&o->word, &present, calm | to);
}

/* True if somebody looks at it, who takes it then; else it is ours. */
static bool leave_back(struct out *o, const struct back *b)
{
	u64 calm = atomic_load(&o->word) & ~(u64)OUT_STATE;

	while (!turns(o, calm, OUT_CALM, OUT_LOOKED_AT)) {
		o->back = *b;
		if (turns(o, calm, OUT_LOOKED_AT, OUT_GIVEN_BACK))
			return true;
	}
	return false;
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
	if (o && leave_back(o, &b))
		return;
	take_back(&b, o ? remove_out(o) : NULL);
	errno = saved;
}

void lull_cuda_take_finished(void)
{
	if (lull_cupti.version < TELLS_FINISHED)
		return;
	/* Another tool gets its records when its flush returns, and not from us after that. */
	for (u32 i = 0; i < N_OUT && !lull_cuda_share_is_used(); i++) {
		struct out *o = &out[i];
		u64 calm = o->marked;

		if (!has_records(calm) || !turns(o, calm, OUT_CALM, OUT_LOOKED_AT))
			continue;
		lull_cuda_walk((u8 *)(calm & OUT_BUFFER), BUFFER_BYTES, &o->record, true);
		if (!turns(o, calm, OUT_LOOKED_AT, OUT_CALM)) {
			struct back b = o->back;

			take_back(&b, remove_out(o));
		}
	}
}

void lull_cuda_forget_out(void)
{
	for (u32 i = 0; i < N_OUT; i++)
		if (atomic_load(&out[i].word))
			remove_out(&out[i]);
}
