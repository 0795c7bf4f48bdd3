#include "agent/core/ring.h"

#include <pthread.h>

#include "agent/core/source.h"
#include "agent/core/sys.h"

/* Of the first chunk of a thread: two pages of the usual size hold what a short thread has. */
#define SHORT_BYTES 4096u

__thread struct lull_thread *lull_self;

/* Set while this thread attaches, so that a signal handler on top of it does not attach too. */
static __thread bool is_attaching;

/* The key whose destructor tells that a thread has ended; made once, by the constructor. */
static LULL_EARLY pthread_key_t end_key;
static LULL_EARLY bool has_end_key;

/*
 * Each block belongs to a thread: where the agent comes and leaves and comes again, one may still
 * know its block of the last time, and no other may get that while it lives. Blocks from here on
 * never had an owner, and are zero.
 */
static LULL_EARLY _Atomic u32 n_owners;

/* The slot after the one that was taken last: where the search for the next begins. */
static LULL_EARLY _Atomic u32 after_last;

/* Images that this process has left: what a block remembers of one holds for no other. */
static LULL_EARLY _Atomic u32 n_left;

static void close_stream(struct lull_ring_stream *s)
{
	/* Release: the last event is whole before the recorder may take the chunk for finished. */
	if (s->chunk)
		atomic_store_explicit(&s->chunk->state, LULL_CHUNK_FULL, memory_order_release);
	*s = (struct lull_ring_stream){ 0 };
}

void lull_thread_free_env(struct lull_thread *t)
{
	if (t->env)
		lull_sys_unmap(t->env, t->env_bytes);
	t->env = NULL;
	t->env_bytes = 0;
}

static void on_thread_end(void *arg)
{
	struct lull_thread *t = arg;

	if (t->owner == lull_sys_tid())
		__atomic_store_n(&t->owner, 0, __ATOMIC_RELEASE);
	/* Wiped by a fork, or already gone: nothing of this process. */
	if (t->magic != LULL_WIRE_MAGIC)
		return;
	lull_self = NULL;
	t->magic = 0;
	lull_thread_free_env(t);
	close_stream(&t->stream[0]);
	close_stream(&t->stream[1]);
	atomic_store_explicit(&t->slot->end_counter, lull_time(), memory_order_relaxed);
	/* Release: a recorder that sees ENDED sees the chunks FULL. */
	atomic_store_explicit(&t->slot->state, LULL_SLOT_ENDED, memory_order_release);
}

void lull_thread_leave(void)
{
	struct lull_thread *t = lull_self;

	if (!t)
		return;
	if (has_end_key)
		pthread_setspecific(end_key, NULL);
	on_thread_end(t);
}

void lull_ring_forked(void)
{
	n_owners = 0; /* the kernel has wiped the blocks */
}

void lull_ring_forget(void)
{
	atomic_fetch_add(&n_left, 1);
	for (u32 i = 0; i < lull_agent.n_slots && i < n_owners; i++)
		if (__atomic_load_n(&lull_agent.threads[i].owner, __ATOMIC_RELAXED))
			__atomic_store_n(&lull_agent.threads[i].magic, 0, __ATOMIC_RELEASE);
}

void lull_ring_init(void)
{
	if (!has_end_key)
		has_end_key = pthread_key_create(&end_key, on_thread_end) == 0;
}

/*
 * Whether entry `ix` of a table may be touched. Most processes have few threads, and need a page of
 * each table of 64.
 */
static bool make_ready(_Atomic u32 *n_ready, u32 ix, u64 table_off)
{
	u32 n = atomic_load_explicit(n_ready, memory_order_acquire);
	u32 wanted = (ix / LULL_N_READY + 1) * LULL_N_READY;

	if (ix < n)
		return true;
	if (!lull_agent_back(table_off + (u64)n * LULL_ENTRY_BYTES,
			     (u64)(wanted - n) * LULL_ENTRY_BYTES))
		return false;
	/* Release: who sees the number finds the memory. */
	while (n < wanted &&
	       !atomic_compare_exchange_weak_explicit(n_ready, &n, wanted, memory_order_release,
						      memory_order_relaxed))
		;
	return true;
}

/* A thread has no slot, and so nothing to count its losses in. */
static struct lull_slot *no_slot(enum lull_issue issue)
{
	lull_issue(issue, 1);
	if (lull_has_recording())
		atomic_fetch_add_explicit(&lull_agent.image->n_unplaced, 1, memory_order_relaxed);
	return NULL;
}

static bool is_free_for(u32 ix, u32 tid)
{
	u32 owner;

	/* Not touched: to read a page and to write it then costs twice. */
	if (ix >= atomic_load(&n_owners))
		return true;
	owner = __atomic_load_n(&lull_agent.threads[ix].owner, __ATOMIC_ACQUIRE);
	return !owner || owner == tid;
}

static void own(u32 ix, u32 tid)
{
	u32 n = atomic_load_explicit(&n_owners, memory_order_relaxed);

	__atomic_store_n(&lull_agent.threads[ix].owner, tid, __ATOMIC_RELAXED);
	while (n <= ix && !atomic_compare_exchange_weak(&n_owners, &n, ix + 1))
		;
}

/* Take this one; false if it is another thread's. */
static bool claim(struct lull_slot *slot, u32 ix, u32 tid)
{
	struct lull_agent_live *live = lull_agent.live;
	u32 expected = LULL_SLOT_FREE;
	u64 forked;

	if (atomic_load_explicit(&slot->state, memory_order_relaxed) != LULL_SLOT_FREE ||
	    !is_free_for(ix, tid) ||
	    !atomic_compare_exchange_strong(&slot->state, &expected, LULL_SLOT_STARTING))
		return false;
	own(ix, tid);
	slot->tid = tid;
	slot->pthread_id = (u64)pthread_self();
	/* The first thread of a forked child is as old as that. */
	forked = live->fork_counter ? atomic_exchange(&live->fork_counter, 0) : 0;
	slot->start_counter = forked ? forked : lull_time();
	atomic_store_explicit(&slot->end_counter, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->n_dropped, 0, memory_order_relaxed);
	/* Release: whoever sees LIVE sees the thread's ids. */
	atomic_store_explicit(&slot->state, LULL_SLOT_LIVE, memory_order_release);
	return true;
}

/* The slot that this thread had in an earlier session, or LULL_N_SLOTS. */
static u32 earlier_slot(u32 tid)
{
	u32 ix = lull_self ? (u32)(lull_self - lull_agent.threads) : LULL_N_SLOTS;

	return ix < lull_agent.n_slots && lull_agent.threads[ix].owner == tid ? ix : LULL_N_SLOTS;
}

/*
 * A free slot taken for this thread, or NULL; that of an earlier session if it is free: else the
 * thread would own both until it ends, and slots would run out. Of those that threads had before,
 * the one after the last that was taken: the recorder frees many at a time, and those before it
 * are mostly in use.
 */
static struct lull_slot *take_slot(u32 *slot_ix)
{
	_Atomic u32 *n_ready = &lull_agent.image->n_slots_ready;
	u32 n_all = atomic_load_explicit(&n_owners, memory_order_relaxed);
	u32 n_had = n_all < lull_agent.n_slots ? n_all : lull_agent.n_slots;
	u32 from = atomic_load_explicit(&after_last, memory_order_relaxed);
	u32 tid = lull_sys_tid();
	u32 ix = earlier_slot(tid);

	if (ix < LULL_N_SLOTS && make_ready(n_ready, ix, LULL_IMAGE_SLOTS_OFF) &&
	    claim(&lull_agent.slots[ix], ix, tid)) {
		*slot_ix = ix;
		return &lull_agent.slots[ix];
	}
	for (u32 i = 0; i < lull_agent.n_slots; i++) {
		ix = i < n_had ? (from + i) % n_had : i;
		if (!make_ready(n_ready, ix, LULL_IMAGE_SLOTS_OFF))
			return no_slot(LULL_ISSUE_no_memory);
		if (claim(&lull_agent.slots[ix], ix, tid)) {
			atomic_store_explicit(&after_last, ix + 1, memory_order_relaxed);
			*slot_ix = ix;
			return &lull_agent.slots[ix];
		}
	}
	return no_slot(LULL_ISSUE_too_many_threads);
}

/* One that no thread had: numbers in a row, spread over all bits, as hashes are. */
static u64 new_salt(void)
{
	static LULL_EARLY _Atomic u64 n_salts;
	u64 n = atomic_fetch_add_explicit(&n_salts, 1, memory_order_relaxed) + 1;

	return lull_hash(&n, sizeof(n));
}

/* What `seen` of a thread is about in this recording; 0 if there is none. */
static u64 seen_in(u32 record)
{
	return record ? (u64)atomic_load(&n_left) << 32 | record : 0;
}

/*
 * For another thread. What `seen` has of this recording stays: the recorder gives a slot back when
 * it has read all that was written there, so it has these definitions, and a server with a thread
 * for each request need not write them for each.
 */
static void clear(struct lull_thread *t)
{
	u32 record = atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed);
	u64 salt = t->salt, seen_by = t->seen_by;
	u32 owner = t->owner;

	lull_thread_free_env(t); /* of an earlier session */
	memset(t, 0, LULL_THREAD_CLEARED);
	t->owner = owner;
	if (!seen_by || seen_by != seen_in(record))
		return;
	t->salt = salt;
	t->seen_by = seen_by;
}

static struct lull_thread *attach(void)
{
	struct lull_thread *t;
	struct lull_slot *slot;
	u32 slot_ix = 0;

	if (!lull_agent_ready())
		return NULL;
	slot = take_slot(&slot_ix);
	if (!slot)
		return NULL;
	t = &lull_agent.threads[slot_ix];
	/* A block that nobody had is zero: short programs do not pay for its pages. */
	if (t->slot)
		clear(t);
	t->slot = slot;
	t->slot_ix = slot_ix;
	if (!t->seen_by)
		t->salt = new_salt();
	t->magic = LULL_WIRE_MAGIC;
	lull_self = t;
	if (has_end_key)
		pthread_setspecific(end_key, t);
	return t;
}

struct lull_thread *lull_thread_attach(void)
{
	struct lull_thread *t;
	int saved = errno;
	bool has_waited;

	if (!lull_agent.has_session || is_attaching)
		return NULL;
	is_attaching = true;
	atomic_signal_fence(memory_order_seq_cst);
	has_waited = lull_agent.live->fork_counter != 0;
	t = attach();
	atomic_signal_fence(memory_order_seq_cst);
	is_attaching = false;
	if (has_waited && t)
		lull_modules_repeat(); /* what a forked child tells first */
	errno = saved;
	return t;
}

void lull_thread_sync(struct lull_thread *t, u32 record)
{
	if (!t->seen_by || t->seen_by != seen_in(record))
		t->salt = new_salt();
	t->seen_by = seen_in(record);
	/* Ranges that were open before are not of this recording: their ends are ignored. */
	memset(t->level, 0, sizeof(t->level));
	t->capture = 0;
	t->record = record;
	lull_sources_renewed(t);
}

/* Give a chunk memory up to `to_bytes`; has_memory says how much it has. */
static bool populate(struct lull_chunk *c, u32 ix, u32 to_bytes)
{
	u32 from_bytes = atomic_load_explicit(&c->has_memory, memory_order_relaxed);

	if (from_bytes >= to_bytes)
		return true;
	if (!lull_agent_back(LULL_IMAGE_DATA_OFF + (u64)ix * LULL_CHUNK_BYTES + from_bytes,
			     to_bytes - from_bytes))
		return false;
	atomic_store_explicit(&c->has_memory, to_bytes, memory_order_relaxed);
	return true;
}

/*
 * The first chunk of a thread gets a part of its memory at first: most processes are short, and so
 * are the threads of servers that start one for each request.
 */
static u32 first_bytes(const struct lull_thread *t, u32 level)
{
	return t->stream[level].chunk ? LULL_CHUNK_BYTES : SHORT_BYTES;
}

/*
 * Scan for a free chunk; one exists, because the caller has taken a ticket from n_free. But where
 * memory is full there may be no entry for it; then others may be free below the hint.
 */
static struct lull_chunk *find_free(struct lull_image *image, u32 *ix)
{
	u32 n = image->n_chunks;
	u32 from = atomic_load_explicit(&image->chunk_hint, memory_order_relaxed);
	bool is_full = false;

	for (u32 i = 0; i < 2 * n; i++) {
		u32 at = (from + i) % n;
		struct lull_chunk *c = &lull_agent.chunks[at];
		u32 expected = LULL_CHUNK_FREE;

		if (is_full && at >= atomic_load(&image->n_chunks_ready))
			break;
		if (!make_ready(&image->n_chunks_ready, at, LULL_IMAGE_CHUNKS_OFF)) {
			is_full = true;
			i += n - 1 - at; /* on to the first */
			continue;
		}
		if (atomic_load_explicit(&c->state, memory_order_relaxed) != LULL_CHUNK_FREE)
			continue;
		/* Acquire: the recorder's reset of the chunk happened before. */
		if (!atomic_compare_exchange_strong_explicit(&c->state, &expected, LULL_CHUNK_TAKEN,
							     memory_order_acquire,
							     memory_order_relaxed))
			continue;
		atomic_store_explicit(&image->chunk_hint, at + 1, memory_order_relaxed);
		*ix = at;
		return c;
	}
	if (is_full)
		lull_issue(LULL_ISSUE_no_memory, 1);
	return NULL;
}

static struct lull_chunk *take_chunk(struct lull_thread *t, u32 level, u32 *ix)
{
	struct lull_image *image = lull_agent.image;
	struct lull_chunk *c = NULL;
	u32 used;

	if (atomic_fetch_sub_explicit(&image->n_free, 1, memory_order_acquire) > 0)
		c = find_free(image, ix);
	if (!c) {
		atomic_fetch_add_explicit(&image->n_free, 1, memory_order_relaxed);
		return NULL;
	}
	/* Not by n_used: a later chunk may have got memory where this one did not, or not yet. */
	if (!populate(c, *ix, first_bytes(t, level))) {
		lull_issue(LULL_ISSUE_no_memory, 1);
		atomic_store_explicit(&c->state, LULL_CHUNK_FREE, memory_order_release);
		atomic_fetch_add_explicit(&image->n_free, 1, memory_order_relaxed);
		return NULL;
	}
	used = atomic_load_explicit(&image->n_used, memory_order_relaxed);
	while (*ix >= used &&
	       !atomic_compare_exchange_weak_explicit(&image->n_used, &used, *ix + 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
	c->slot = t->slot_ix;
	c->level = level;
	c->seq = atomic_fetch_add_explicit(&image->next_seq, 1, memory_order_relaxed) + 1;
	/*
	 * Release: a recorder that sees OWNED sees whose it is. `committed` was zeroed when it was
	 * freed.
	 */
	atomic_store_explicit(&c->state, LULL_CHUNK_OWNED, memory_order_release);
	return c;
}

/* The chunk has memory that it did not use so far. */
static bool widen(struct lull_ring_stream *s, u32 size_bytes)
{
	u32 ix;

	if (!s->chunk || s->end >= s->base + LULL_CHUNK_BYTES ||
	    (size_t)(s->base + LULL_CHUNK_BYTES - s->at) < size_bytes)
		return false;
	ix = (u32)(s->chunk - lull_agent.chunks);
	if (!populate(s->chunk, ix, LULL_CHUNK_BYTES))
		return false;
	s->end = s->base + LULL_CHUNK_BYTES;
	return true;
}

bool lull_stream_refill(struct lull_thread *t, u32 level, u32 size_bytes)
{
	struct lull_ring_stream *s = &t->stream[level & 1];
	struct lull_chunk *c;
	int saved = errno;
	u32 ix = 0;

	if (level > 1 || size_bytes > LULL_EVENT_MAX) {
		lull_issue(LULL_ISSUE_nested_drop, 1);
		c = NULL;
	} else {
		bool is_wide = widen(s, size_bytes);

		c = is_wide ? NULL : take_chunk(t, level, &ix);
		errno = saved;
		if (is_wide)
			return true;
	}
	if (!c) {
		atomic_fetch_add_explicit(&t->slot->n_dropped, 1, memory_order_relaxed);
		return false;
	}
	close_stream(s);
	s->chunk = c;
	s->base = lull_agent.data + (size_t)ix * LULL_CHUNK_BYTES;
	s->at = s->base;
	s->end = s->base + atomic_load_explicit(&c->has_memory, memory_order_relaxed);
	if ((size_t)(s->end - s->at) < size_bytes && !widen(s, size_bytes)) {
		lull_issue(LULL_ISSUE_no_memory, 1);
		atomic_fetch_add_explicit(&t->slot->n_dropped, 1, memory_order_relaxed);
		return false;
	}
	return true;
}

/* A definition was dropped; the counter is about what the program emitted, so take it back. */
static void not_an_event(struct lull_thread *t)
{
	atomic_fetch_sub_explicit(&t->slot->n_dropped, 1, memory_order_relaxed);
}

bool lull_define_string(struct lull_thread *t, u64 hash, const char *text, size_t len)
{
	struct lull_wire_string *e;
	u32 n = len > LULL_EVENT_MAX - sizeof(*e) ? LULL_EVENT_MAX - (u32)sizeof(*e) : (u32)len;
	u32 size_bytes = (u32)sizeof(*e) + lull_round8(n);

	e = lull_reserve(t, LULL_EVENT_string, size_bytes);
	if (!e) {
		not_an_event(t);
		return false;
	}
	e->head.a = n;
	e->hash = hash;
	memcpy(e + 1, text, n);
	lull_commit(t, size_bytes);
	return true;
}

bool lull_define_label(struct lull_thread *t, const struct lull_wire_label *label)
{
	struct lull_wire_label *e = lull_reserve(t, LULL_EVENT_label, sizeof(*e));

	if (!e) {
		not_an_event(t);
		return false;
	}
	e->head.a = label->head.a;
	e->hash = label->hash;
	e->name = label->name;
	e->domain = label->domain;
	e->color = label->color;
	e->api = label->api;
	lull_commit(t, sizeof(*e));
	return true;
}
