/*
 * ring - per-thread reserve, write, commit in shared memory: the hot path of every source.
 *
 *	struct lull_thread *t = lull_recording();	NULL: no recording, return immediately
 *	u64 name = lull_name(t, text, len);		defined once per thread and recording
 *	struct lull_wire_oscall *e = lull_reserve(t, LULL_EVENT_oscall, sizeof(*e));
 *	if (e) {
 *		e->... = ...;			head.counter is already set
 *		lull_commit(t, sizeof(*e));
 *	}
 *
 * Guarantees:       no lock, no allocation, no system call except one for a new chunk; safe in a
 *                   signal handler. If there is no space, lull_reserve() returns NULL and has
 *                   counted the event as dropped. Between reserve and commit the caller must not
 *                   call anything that may emit on this thread.
 * Nesting:          a handler that interrupts a reserve..commit writes to a second stream (level
 *                   1).
 * Fork:             struct lull_thread is in memory that the Linux kernel zeroes in a forked child,
 *                   so the child's first emit takes the slow path and opens the child's own image.
 *                   A vfork child uses the struct of its parent's thread, which is suspended until
 *                   the child execs or exits.
 */
#ifndef LULL_AGENT_CORE_RING_H
#define LULL_AGENT_CORE_RING_H

#include <stddef.h>
#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/thread_state.h"
#include "base/hash.h"
#include "base/time.h"
#include "wire/wire.h"

#define LULL_N_SEEN 4096u /* names a thread remembers having defined, in sets of two */
#define LULL_N_DOMAINS \
	64u /* domains with a level counter of their own; later ones share the last */

/* A name with its hash, 0 if it is empty; the bytes are borrowed. */
struct lull_text {
	u64 hash;
	const char *bytes;
	size_t len;
};

/* Where one (thread, level) writes. */
struct lull_ring_stream {
	u8 *at;
	u8 *end;
	u8 *base;
	struct lull_chunk *chunk;
};

/* Whose a thread is, for those who call CUDA. */
enum lull_role { LULL_ROLE_UNKNOWN = 0, LULL_ROLE_PROGRAM, LULL_ROLE_ENGINE, LULL_ROLE_AGENT };

/*
 * What every event needs lies in the first two cache lines: a program whose own code fills the
 * caches pays for lines, not for instructions.
 */
struct lull_thread {
	_Alignas(64) u32 magic; /* LULL_WIRE_MAGIC; 0 = wiped by a fork or not yet attached */
	u32 record;		/* recording that this thread takes part in */
	u32 depth;    /* reserves not yet committed: 0, or 1 while a handler runs on top of one */
	u32 is_quiet; /* > 0 inside agent code and nested hooks: hooks pass straight through */
	u32 slot_ix;
	/*
	 * lull_capture_key() of the range that holds the recording, 0 = none; in a session of lull
	 * kernel, of the outermost range whose kernels are measured.
	 */
	u32 capture;
	struct lull_osrt_state osrt;
	struct lull_gil_state gil;
	struct lull_timer_state timer;
	struct lull_cuda_state cuda;
	struct lull_ring_stream stream[2];
	struct lull_slot *slot;
	/*
	 * Differs each time that `seen` begins anew, and so nothing that stands there from before
	 * is found.
	 */
	u64 salt;
	u64 seen_by; /* image and recording whose definitions `seen` has (ring.c), 0 = none */
	/* The last call of CUDA that was recorded; beside what each of them looks at anyway. */
	union lull_cuda_key last_call;
	u64 cuda_line; /* the Python stack of the wait for the device that it is in, 0: not known */
	u16 level[LULL_N_DOMAINS]; /* NVTX nesting depth by domain index */
	struct lull_torch_state torch;
	struct lull_request_state request;
	struct lull_came_state came;
	struct lull_kernel_state kernel;
	u32 role;  /* enum lull_role, once it is looked up (cuda_attach.c) */
	u32 owner; /* the thread that the block belongs to, 0 = nobody; clear() keeps it (ring.c) */
	char **env;	  /* room for the environment of a child (process_exec.c), or NULL */
	size_t env_bytes; /* of that */
	/*
	 * From here on nothing is cleared for the next thread that gets the block: servers start a
	 * thread for each request, and it would take longer than all that such a thread records.
	 */
	u64 seen[LULL_N_SEEN]; /* of hashes, each with `salt` */
};
#define LULL_THREAD_CLEARED offsetof(struct lull_thread, seen)
_Static_assert(offsetof(struct lull_thread, stream) + sizeof(struct lull_ring_stream) <= 128,
	       "what every event needs lies in two cache lines");

/*
 * This thread's block; NULL before its first event. Static TLS of the agent: this, lull_lib_self
 * and a flag.
 */
extern __thread struct lull_thread *lull_self __attribute__((visibility("hidden")));

/* Once per process, before the first event. */
void lull_ring_init(void);

/* In a forked child: the other threads are gone. */
void lull_ring_forked(void);

/* The image is gone: each thread attaches anew with its next event, if there is a session then. */
void lull_ring_forget(void);

/* Slow paths, in ring.c. */
struct lull_thread *lull_thread_attach(void);
void lull_thread_free_env(struct lull_thread *t);
void lull_thread_leave(void); /* give the block back; what is emitted later is of a new one */
void lull_thread_sync(struct lull_thread *t, u32 record);
bool lull_stream_refill(struct lull_thread *t, u32 level, u32 size_bytes);

/* An event of the program is not recorded, for want of room: that is counted. */
static inline void lull_count_drop(struct lull_thread *t)
{
	atomic_fetch_add_explicit(&t->slot->n_dropped, 1, memory_order_relaxed);
}

/* Write a definition, whether or not the thread remembers one; false if it was dropped. */
bool lull_define_string(struct lull_thread *t, u64 hash, const char *text, size_t len);
bool lull_define_label(struct lull_thread *t, const struct lull_wire_label *label);

/* The time of an event: the counter, or the clock on machines whose counter cannot be used. */
static inline u64 lull_time(void)
{
	if (__builtin_expect(lull_agent.control->is_clock != 0, 0))
		return lull_now_ns();
	return lull_counter();
}

/* This thread's block, attached if need be; NULL if the agent is off or has no slot left. */
static inline struct lull_thread *lull_thread(void)
{
	struct lull_thread *t = lull_self;

	if (__builtin_expect(t && t->magic == LULL_WIRE_MAGIC, 1))
		return t;
	return lull_thread_attach();
}

/* True if a recording is on. */
static inline bool lull_has_recording(void)
{
	return atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed) != 0;
}

/* This thread's block if a recording is on, else NULL. */
static inline struct lull_thread *lull_recording(void)
{
	u32 record = atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed);
	struct lull_thread *t;

	if (__builtin_expect(!record, 1))
		return NULL;
	t = lull_thread();
	if (t && __builtin_expect(t->record != record, 0))
		lull_thread_sync(t, record);
	return t;
}

/*
 * Room for an event of `size_bytes` (multiple of 8), its head filled; NULL if dropped (and
 * counted).
 */
static inline void *lull_reserve_at(struct lull_thread *t, u16 type, u32 size_bytes, u64 counter)
{
	u32 level = t->depth;
	struct lull_ring_stream *s;
	struct lull_event *e;

	/*
	 * The handler that may interrupt us from here on sees depth + 1 and keeps to the other
	 * stream.
	 */
	t->depth = level + 1;
	atomic_signal_fence(memory_order_seq_cst);
	s = &t->stream[level & 1];
	if (__builtin_expect(level > 1 || (size_t)(s->end - s->at) < size_bytes, 0)) {
		if (!lull_stream_refill(t, level, size_bytes)) {
			atomic_signal_fence(memory_order_seq_cst);
			t->depth = level;
			return NULL;
		}
	}
	e = (struct lull_event *)s->at;
	e->counter = counter;
	e->type = type;
	e->size_bytes = (u16)size_bytes;
	e->a = 0;
	return e;
}

/* The same, stamped with the present time. */
static inline void *lull_reserve(struct lull_thread *t, u16 type, u32 size_bytes)
{
	return lull_reserve_at(t, type, size_bytes, lull_time());
}

/* Publish the event last reserved. */
static inline void lull_commit(struct lull_thread *t, u32 size_bytes)
{
	u32 level = t->depth - 1;
	struct lull_ring_stream *s = &t->stream[level & 1];

	s->at += size_bytes;
	/* Release: a reader that sees the new count sees the bytes of the event. */
	atomic_store_explicit(&s->chunk->committed, (u32)(s->at - s->base), memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	t->depth = level;
}

/* True if this thread has defined the hash in the present recording. */
static inline bool lull_is_defined(const struct lull_thread *t, u64 hash)
{
	const u64 *set = &t->seen[hash % (LULL_N_SEEN / 2) * 2];
	u64 entry = hash ^ t->salt;

	return set[0] == entry || set[1] == entry;
}

/*
 * Remember that the hash is defined; the older of its set is forgotten. Call it after the
 * definition is committed, so that a handler in between defines it once more rather than never.
 */
static inline void lull_remember(struct lull_thread *t, u64 hash)
{
	u64 *set = &t->seen[hash % (LULL_N_SEEN / 2) * 2];

	set[1] = set[0];
	set[0] = hash ^ t->salt;
}

/* The hash of a name, defined in this thread's stream. "" gives 0. */
static inline u64 lull_name(struct lull_thread *t, const char *text, size_t len)
{
	u64 hash;

	if (!len)
		return 0;
	hash = lull_hash(text, len);
	if (__builtin_expect(!lull_is_defined(t, hash), 0) &&
	    lull_define_string(t, hash, text, len))
		lull_remember(t, hash);
	return hash;
}

/* A name and its hash. */
static inline struct lull_text lull_text(const char *bytes, size_t len)
{
	return (struct lull_text){
		.hash = len ? lull_hash(bytes, len) : 0,
		.bytes = bytes,
		.len = len,
	};
}

/* Names a range that is open on a thread; never 0. */
static inline u32 lull_capture_key(u32 domain_ix, u32 level)
{
	return (domain_ix << 16 | level) + 1;
}

/* Size rounded up to what events are made of. */
static inline u32 lull_round8(size_t n)
{
	return (u32)((n + 7) & ~(size_t)7);
}

/* Largest event; names and payloads beyond it are cut. */
#define LULL_EVENT_MAX 32768u

#endif
