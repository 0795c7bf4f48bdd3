/*
 * The ring under ThreadSanitizer: eight threads and their signal handlers write, threads come and
 * go, a reader that follows the rules of wire/wire.h reads, sometimes too slowly.
 *
 * Every event carries its thread, level and number and a checksum of them. At the end the accounts
 * must be exact: each committed event was seen once, in order and whole; emitted = seen + dropped.
 * Some have a name, which the reader must know by then, from this thread or one before it.
 *
 * The agent around the ring is a stand-in: an image in plain memory with a small pool, so that it
 * runs empty. ThreadSanitizer sees both sides, because the reader reads the mapping itself.
 *
 *	test_ring [SECONDS]
 *
 * It goes on for so long, and until enough of everything has happened.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/core/ring.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"

#include "../support/patience.h"

#define N_PRODUCERS 8
#define N_CHUNKS    24u
#define MAX_LIVES   4096u  /* threads that ever ran */
#define SPREE	    20000u /* events of one thread before another takes its place */
#define N_NAMES	    8u

static struct lull_control control = { .magic = LULL_WIRE_MAGIC, .record = 1 };
static struct lull_image image;
static struct lull_slot slots[LULL_N_SLOTS];
static struct lull_chunk chunks[N_CHUNKS];
static _Alignas(64) u8 data[N_CHUNKS * LULL_CHUNK_BYTES];
static struct lull_thread threads[LULL_N_SLOTS];

/* The agent's own system calls go by it. */
struct lull_real lull_real = { .syscall = syscall };

static struct lull_agent_live alive;

struct lull_agent lull_agent = {
	.control = &control,
	.live = &alive,
	.image = &image,
	.slots = slots,
	.chunks = chunks,
	.data = data,
	.threads = threads,
	.has_session = true,
	.n_slots = LULL_N_SLOTS,
};

bool lull_agent_ready(void)
{
	return true;
}

void lull_modules_repeat(void)
{
}

void lull_sources_renewed(struct lull_thread *t)
{
	(void)t;
}

bool lull_agent_back(u64 off_bytes, u64 size_bytes)
{
	(void)off_bytes, (void)size_bytes;
	return true;
}

/* What is written: life is one run of one thread. */
struct event {
	struct lull_event head;
	u32 life, level;
	u64 number, check;
	u64 name; /* its hash, 0 = none */
};

/* The accounts of one life, by level. The reader's side is its own. */
static struct account {
	u64 n_emitted[2];	/* by the thread; read after it was joined */
	u64 n_dropped[2];	/* likewise */
	u64 n_seen[2], next[2]; /* by the reader */
} accounts[MAX_LIVES];

static _Atomic u32 n_lives, is_over;
static _Atomic u64 n_all_seen[2], n_all_dropped; /* so far, of all lives and by level */
static _Atomic u64 n_slot_drops; /* what the slots counted, taken before they are freed */
static _Atomic u32 n_heirs;	 /* lives that found a name defined by the thread before them */
static bool is_named[LULL_N_SLOTS][N_NAMES]; /* the reader's own */
static __thread u32 my_life;
static __thread volatile u64 n_mine[2], n_refused[2];

static u64 check_of(u32 life, u32 level, u64 number)
{
	return lull_hash_mix((u64)life << 32 | level, number ^ 0x9e3779b97f4a7c15ULL);
}

static u64 hash_of_name(u32 ix)
{
	char text[] = { 'n', 'a', 'm', 'e', (char)('0' + ix) };

	return lull_hash(text, sizeof(text));
}

/* The hash of a name if it is defined now, else 0: there was no room. */
static u64 name_of(struct lull_thread *t, u32 ix)
{
	char text[] = { 'n', 'a', 'm', 'e', (char)('0' + ix) };
	u64 hash = lull_name(t, text, sizeof(text));

	return lull_is_defined(t, hash) ? hash : 0;
}

static void emit(struct lull_thread *t, u32 level, u64 name, u32 extra_bytes)
{
	u64 number = n_mine[level];
	struct event *e = lull_reserve(t, LULL_EVENT_mark, (u32)sizeof(*e) + extra_bytes);

	n_mine[level] = number + 1;
	if (!e) {
		n_refused[level] = n_refused[level] + 1;
		atomic_fetch_add_explicit(&n_all_dropped, 1, memory_order_relaxed);
		return;
	}
	e->life = my_life;
	e->level = level;
	e->number = number;
	e->name = name;
	/* A handler may come between any two of these. */
	e->check = check_of(my_life, level, number);
	lull_commit(t, (u32)sizeof(*e) + extra_bytes);
}

/*
 * On top of a reserve it writes at level 1; between events it would write at level 0, in the midst
 * of the numbers there, so it does not.
 */
static void on_signal(int sig)
{
	struct lull_thread *t = lull_self;
	int saved = errno;

	(void)sig;
	if (t && t->magic == LULL_WIRE_MAGIC && t->depth == 1)
		for (u32 i = 0; i < 3; i++)
			emit(t, 1, 0, 8 * i);
	errno = saved;
}

static void *live(void *unused)
{
	u32 life = atomic_fetch_add(&n_lives, 1);
	struct lull_thread *t;

	(void)unused;
	my_life = life;
	n_mine[0] = n_mine[1] = n_refused[0] = n_refused[1] = 0;
	t = life < MAX_LIVES ? lull_recording() : NULL;
	if (t && lull_is_defined(t, hash_of_name(0)))
		atomic_fetch_add(&n_heirs, 1);
	for (u32 i = 0; t && i < SPREE && !atomic_load(&is_over); i++) {
		u64 name = i % 8 == 0 ? name_of(t, i / 8 % N_NAMES) : 0;

		emit(t, 0, name, 8 * (i % 40));
		/* The handler must find the thread between reserve and commit often enough. */
		if (i % 16 == 0) {
			struct event *e = lull_reserve(t, LULL_EVENT_mark, sizeof(*e));

			raise(SIGUSR1);
			if (e) {
				*e = (struct event){ .head = e->head,
						     .life = life,
						     .number = n_mine[0],
						     .check = check_of(life, 0, n_mine[0]) };
				lull_commit(t, sizeof(*e));
			} else {
				n_refused[0] = n_refused[0] + 1;
			}
			n_mine[0] = n_mine[0] + 1;
		}
	}
	for (u32 level = 0; t && level < 2; level++) {
		accounts[life].n_emitted[level] = n_mine[level];
		accounts[life].n_dropped[level] = n_refused[level];
	}
	return NULL;
}

/* One thread after the other. */
static void *produce(void *unused)
{
	pthread_t thread;

	while (!atomic_load(&is_over) && atomic_load(&n_lives) < MAX_LIVES) {
		if (pthread_create(&thread, NULL, live, NULL) != 0)
			break;
		pthread_join(thread, NULL);
	}
	return unused;
}

/* Signals from outside, at any moment. */
static void *annoy(void *unused)
{
	while (!atomic_load(&is_over)) {
		kill(getpid(), SIGUSR1);
		usleep(200);
	}
	return unused;
}

static int fail(const char *what, u32 life, u64 a, u64 b)
{
	fprintf(stderr, "test_ring: %s (life %u, %llu, %llu)\n", what, life, (unsigned long long)a,
		(unsigned long long)b);
	exit(1);
}

static void see_name(const struct lull_wire_string *e, u32 slot)
{
	for (u32 i = 0; i < N_NAMES; i++)
		if (e->hash == hash_of_name(i))
			is_named[slot][i] = true;
}

/* Rule 4: a definition comes before its uses, by the same thread or one that had its slot. */
static void check_name(const struct event *e, u32 slot)
{
	for (u32 i = 0; i < N_NAMES; i++)
		if (e->name == hash_of_name(i) && is_named[slot][i])
			return;
	if (e->name)
		fail("a name before its definition", e->life, e->number, e->name);
}

static void see(const struct event *e, const struct lull_chunk *c)
{
	struct account *a;

	if (e->head.type == LULL_EVENT_string) {
		see_name((const void *)e, c->slot);
		return;
	}
	check_name(e, c->slot);
	if (e->life >= MAX_LIVES || e->level > 1 ||
	    e->check != check_of(e->life, e->level, e->number))
		fail("a torn event", e->life, e->number, e->check);
	if (e->level != c->level)
		fail("an event at the wrong level", e->life, e->level, c->level);
	a = &accounts[e->life];
	if (e->number < a->next[e->level])
		fail("an event twice or out of order", e->life, e->number, a->next[e->level]);
	a->next[e->level] = e->number + 1;
	a->n_seen[e->level]++;
	atomic_fetch_add_explicit(&n_all_seen[e->level], 1, memory_order_relaxed);
}

/* How far each chunk has been read; the reader's own. */
static struct place {
	u32 read_bytes;
	bool is_done;
} places[N_CHUNKS];

/* Rule 2: only what `committed` covers. True if the chunk is FULL and read to its end. */
static bool read_chunk(u32 ix)
{
	struct lull_chunk *c = &chunks[ix];
	u32 state = atomic_load_explicit(&c->state, memory_order_acquire);
	u32 committed = atomic_load_explicit(&c->committed, memory_order_acquire);
	u32 at = places[ix].read_bytes;

	while (at < committed) {
		const struct event *e = (const void *)(data + (size_t)ix * LULL_CHUNK_BYTES + at);

		if (e->head.size_bytes < sizeof(e->head) || e->head.size_bytes > committed - at)
			fail("an event of a wrong size", 0, e->head.size_bytes, committed - at);
		see(e, c);
		at += e->head.size_bytes;
	}
	places[ix].read_bytes = at;
	return state == LULL_CHUNK_FULL;
}

/* Rule 3: in order of seq; a later chunk of a stream only after the earlier is finished. */
static void drain(void)
{
	static u8 is_blocked[LULL_N_SLOTS * 2];
	u32 order[N_CHUNKS], n = 0;

	memset(is_blocked, 0, sizeof(is_blocked));
	for (u32 i = 0; i < N_CHUNKS; i++) {
		u32 state = atomic_load_explicit(&chunks[i].state, memory_order_acquire), j;

		if ((state != LULL_CHUNK_OWNED && state != LULL_CHUNK_FULL) || places[i].is_done)
			continue;
		for (j = n++; j > 0 && chunks[order[j - 1]].seq > chunks[i].seq; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	for (u32 i = 0; i < n; i++) {
		const struct lull_chunk *c = &chunks[order[i]];
		u32 stream = c->slot * 2 + c->level;

		if (is_blocked[stream])
			continue;
		places[order[i]].is_done = read_chunk(order[i]);
		is_blocked[stream] = !places[order[i]].is_done;
	}
}

/* Rule 1: FULL -> FREE is ours. */
static void give_back(void)
{
	static u8 has_chunk[LULL_N_SLOTS];

	for (u32 i = 0; i < N_CHUNKS; i++) {
		if (!places[i].is_done)
			continue;
		places[i] = (struct place){ 0 };
		atomic_store_explicit(&chunks[i].committed, 0, memory_order_relaxed);
		atomic_store_explicit(&chunks[i].state, LULL_CHUNK_FREE, memory_order_release);
		atomic_fetch_add_explicit(&image.n_free, 1, memory_order_release);
	}
	memset(has_chunk, 0, sizeof(has_chunk));
	for (u32 i = 0; i < N_CHUNKS; i++) {
		u32 state = atomic_load_explicit(&chunks[i].state, memory_order_acquire);

		if (state == LULL_CHUNK_OWNED || state == LULL_CHUNK_FULL)
			has_chunk[chunks[i].slot] = 1;
	}
	for (u32 i = 0; i < LULL_N_SLOTS; i++) {
		if (has_chunk[i] ||
		    atomic_load_explicit(&slots[i].state, memory_order_acquire) != LULL_SLOT_ENDED)
			continue;
		atomic_fetch_add(&n_slot_drops, atomic_load(&slots[i].n_dropped));
		atomic_store_explicit(&slots[i].state, LULL_SLOT_FREE, memory_order_release);
	}
}

static void *consume(void *unused)
{
	for (u32 round = 0; !atomic_load(&is_over); round++) {
		drain();
		give_back();
		/* Long enough, now and then, for the pool to run empty. */
		usleep(round % 8 == 7 ? 60000 : 500);
	}
	return unused;
}

static int settle(void)
{
	u32 n = atomic_load(&n_lives) < MAX_LIVES ? atomic_load(&n_lives) : MAX_LIVES;
	u64 n_emitted[2] = { 0 }, n_seen[2] = { 0 }, n_dropped[2] = { 0 };

	for (u32 life = 0; life < n; life++) {
		const struct account *a = &accounts[life];

		for (u32 level = 0; level < 2; level++) {
			if (a->n_emitted[level] != a->n_seen[level] + a->n_dropped[level])
				fail("emitted is not seen and dropped", life, a->n_emitted[level],
				     a->n_seen[level] + a->n_dropped[level]);
			n_emitted[level] += a->n_emitted[level];
			n_seen[level] += a->n_seen[level];
			n_dropped[level] += a->n_dropped[level];
		}
	}
	printf("test_ring: %u threads; %llu + %llu events = %llu + %llu seen, %llu + %llu "
	       "dropped\n",
	       n, (unsigned long long)n_emitted[0], (unsigned long long)n_emitted[1],
	       (unsigned long long)n_seen[0], (unsigned long long)n_seen[1],
	       (unsigned long long)n_dropped[0], (unsigned long long)n_dropped[1]);
	if (n_dropped[0] + n_dropped[1] != atomic_load(&n_slot_drops))
		fail("the slots count other drops", 0, n_dropped[0] + n_dropped[1],
		     atomic_load(&n_slot_drops));
	return 0;
}

/* A run that did not get into the corners proves nothing. */
static bool is_enough(void)
{
	return atomic_load(&n_all_seen[0]) > 10000 && atomic_load(&n_all_seen[1]) > 100 &&
	       atomic_load(&n_all_dropped) > 0 && atomic_load(&n_lives) > 2 * N_PRODUCERS &&
	       atomic_load(&n_heirs) > N_PRODUCERS;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t producers[N_PRODUCERS], consumer, annoyer;
	u64 until_ns, end_ns = test_patience_end_ns();

	image.n_chunks = N_CHUNKS;
	atomic_store(&image.n_free, (i32)N_CHUNKS);
	lull_ring_init();
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&consumer, NULL, consume, NULL);
	for (int i = 0; i < N_PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, NULL);
	pthread_create(&annoyer, NULL, annoy, NULL);
	until_ns = lull_now_ns() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) * LULL_NS_PER_S;
	while (lull_now_ns() < until_ns || !is_enough())
		if (!test_patience_pause(end_ns)) /* signals cut it short */
			fail("too little happened", atomic_load(&n_lives),
			     atomic_load(&n_all_seen[1]), atomic_load(&n_all_dropped));
	atomic_store(&is_over, 1);
	for (int i = 0; i < N_PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	pthread_join(annoyer, NULL);
	pthread_join(consumer, NULL);
	drain();
	give_back();
	return settle();
}
