#include "record/process/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"

/* A chunk to look at in this drain. */
struct item {
	u64 seq;
	u32 ix;
};

static int check_head(struct lull_image_file *f, u64 size_bytes, struct lull_err *err)
{
	u32 n;

	if (f->head->magic != LULL_WIRE_MAGIC ||
	    atomic_load_explicit(&f->head->state, memory_order_acquire) == LULL_IMAGE_STARTING)
		return lull_fail(err, LULL_E_UNSUPPORTED, "'%s' is not ready", f->name);
	n = f->n_chunks = f->head->n_chunks;
	if (!n || n > LULL_N_CHUNKS || LULL_IMAGE_DATA_OFF + (u64)n * LULL_CHUNK_BYTES > size_bytes)
		return lull_fail(err, LULL_E_FORMAT, "'%s' has a bad head", f->name);
	return 0;
}

int lull_image_open(struct lull_image_file *f, int dir_fd, const char *name, struct lull_err *err)
{
	struct stat st;
	void *at;
	int rc;

	memset(f, 0, sizeof(*f));
	lull_vec_init(&f->order, sizeof(struct item));
	strncpy(f->name, name, sizeof(f->name) - 1);
	/* Whoever owns the folder may have put a link or a pipe there. */
	f->fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (f->fd < 0) {
		bool is_full = errno == EMFILE || errno == ENFILE;

		lull_fail_errno(err, "opening '%s'", name);
		err->code = is_full ? LULL_E_NOMEM : LULL_E_IO;
		return err->code;
	}
	if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (u64)st.st_size < LULL_IMAGE_DATA_OFF) {
		close(f->fd);
		return lull_fail(err, LULL_E_UNSUPPORTED, "'%s' is not ready", name);
	}
	at = mmap(NULL, LULL_IMAGE_DATA_OFF, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (at == MAP_FAILED) {
		close(f->fd);
		return lull_fail_errno(err, "mapping '%s'", name);
	}
	f->head = at;
	f->slots = (struct lull_slot *)((u8 *)at + LULL_IMAGE_SLOTS_OFF);
	f->chunks = (struct lull_chunk *)((u8 *)at + LULL_IMAGE_CHUNKS_OFF);
	rc = check_head(f, (u64)st.st_size, err);
	if (rc) {
		lull_image_close(f);
		return rc;
	}
	f->n_slots = f->n_entries = LULL_N_READY; /* from the beginning */
	f->places = lull_alloc(f->n_chunks, sizeof(*f->places));
	f->buffer = lull_alloc(1, LULL_CHUNK_BYTES);
	return 0;
}

void lull_image_close(struct lull_image_file *f)
{
	if (f->head)
		munmap(f->head, LULL_IMAGE_DATA_OFF);
	if (f->fd >= 0)
		close(f->fd);
	free(f->places);
	free(f->buffer);
	lull_vec_release(&f->order);
	f->head = NULL;
	f->places = NULL;
	f->buffer = NULL;
	f->fd = -1;
}

static int by_seq(const void *a, const void *b)
{
	u64 x = ((const struct item *)a)->seq, y = ((const struct item *)b)->seq;

	return x < y ? -1 : x > y;
}

/*
 * Make sure that entries [0, said) of a table have memory, and return how many do. The guest's word
 * is not enough: if it is wild there are holes, and a look at one is a SIGBUS when memory is full.
 */
static u32 ready(struct lull_image_file *f, u32 *known, u32 said, u64 table_off)
{
	off_t from = (off_t)(table_off + (u64)*known * LULL_ENTRY_BYTES);

	if (said > *known &&
	    (fallocate(f->fd, 0, from, (off_t)(said - *known) * LULL_ENTRY_BYTES) == 0 ||
	     errno == EOPNOTSUPP))
		*known = said;
	return *known;
}

u32 lull_image_n_slots(struct lull_image_file *f)
{
	u32 n = atomic_load_explicit(&f->head->n_slots_ready, memory_order_acquire);

	return ready(f, &f->n_slots, n < LULL_N_SLOTS ? n : LULL_N_SLOTS, LULL_IMAGE_SLOTS_OFF);
}

/* Chunks [0, n) were ever in use; a wild value from the guest is cut to what there is. */
static u32 n_used(struct lull_image_file *f)
{
	u32 n = atomic_load_explicit(&f->head->n_used, memory_order_relaxed);
	u32 n_ready;

	n = n < f->n_chunks ? n : f->n_chunks;
	n_ready = ready(f, &f->n_entries, n, LULL_IMAGE_CHUNKS_OFF);
	return n < n_ready ? n : n_ready;
}

/* Chunks that hold or may hold unread events, in order of acquisition. */
static void list_chunks(struct lull_image_file *f)
{
	u32 n = n_used(f);

	f->order.n = 0;
	for (u32 i = 0; i < n; i++) {
		/* Acquire: with OWNED or FULL come the owner and the seq. */
		u32 state = atomic_load_explicit(&f->chunks[i].state, memory_order_acquire);
		struct item *item;

		if (state != LULL_CHUNK_OWNED && state != LULL_CHUNK_FULL)
			continue;
		if (f->places[i].is_done)
			continue;
		item = lull_vec_push(&f->order);
		item->seq = f->chunks[i].seq;
		item->ix = i;
	}
	if (f->order.n > 1)
		lull_sort(f->order.at, f->order.n, sizeof(struct item), by_seq);
}

/* Deliver the events in buffer[from, to); returns how many. */
static u64 deliver(struct lull_image_file *f, const struct lull_chunk *c, u32 from, u32 to,
		   lull_image_fn *fn, void *ctx)
{
	/* Read once: a guest gone wild may change it between a check and its use. */
	u32 slot_ix = *(const volatile u32 *)&c->slot, level = c->level;
	u64 n = 0;

	if (slot_ix >= lull_image_n_slots(f)) {
		f->n_bad++;
		return 0;
	}
	while (from < to) {
		const struct lull_event *e = (const struct lull_event *)(f->buffer + from);

		if (to - from < sizeof(*e) || e->size_bytes < sizeof(*e) || e->size_bytes % 8 ||
		    e->size_bytes > to - from) {
			f->n_bad++;
			break;
		}
		fn(ctx, slot_ix, level, e);
		from += e->size_bytes;
		n++;
	}
	return n;
}

/* Read one chunk as far as it is committed. True if it is FULL and read to its end. */
static bool read_chunk(struct lull_image_file *f, u32 ix, lull_image_fn *fn, void *ctx,
		       u64 *n_events)
{
	struct lull_chunk_place *place = &f->places[ix];
	struct lull_chunk *c = &f->chunks[ix];
	/*
	 * State before count: a FULL chunk gets no more events, so the count that follows is final.
	 */
	u32 state = atomic_load_explicit(&c->state, memory_order_acquire);
	u32 committed = atomic_load_explicit(&c->committed, memory_order_acquire);
	u32 from = place->read_bytes;

	if (committed > LULL_CHUNK_BYTES || c->slot >= lull_image_n_slots(f))
		committed = 0;
	place->seq = c->seq;
	if (committed > from) {
		u64 off = LULL_IMAGE_DATA_OFF + (u64)ix * LULL_CHUNK_BYTES + from;

		/*
		 * pread copies through the kernel; the fence keeps its loads after ours of
		 * `committed`.
		 */
		atomic_thread_fence(memory_order_seq_cst);
		if (pread(f->fd, f->buffer + from, committed - from, (off_t)off) !=
		    (ssize_t)(committed - from)) {
			f->n_bad++;
			return false;
		}
		*n_events += deliver(f, c, from, committed, fn, ctx);
		place->read_bytes = committed;
		f->unreleased_bytes += committed - from;
	}
	return state == LULL_CHUNK_FULL;
}

u64 lull_image_drain(struct lull_image_file *f, lull_image_fn *fn, void *ctx)
{
	/*
	 * Streams (slot, level) whose current chunk is not finished: later chunks must wait. A bit
	 * each.
	 */
	u8 is_blocked[LULL_N_SLOTS / 4] = { 0 };
	u64 n_events = 0;

	list_chunks(f);
	for (size_t i = 0; i < f->order.n; i++) {
		const struct item *item = lull_vec_get(&f->order, i);
		const struct lull_chunk *c = &f->chunks[item->ix];
		u32 stream = (c->slot % LULL_N_SLOTS) * 2 + (c->level & 1);

		if (is_blocked[stream / 8] & 1u << stream % 8)
			continue;
		if (read_chunk(f, item->ix, fn, ctx, &n_events))
			f->places[item->ix].is_done = true;
		else
			is_blocked[stream / 8] |= (u8)(1u << stream % 8);
	}
	return n_events;
}

static void release_chunk(struct lull_image_file *f, u32 ix)
{
	struct lull_chunk *c = &f->chunks[ix];

	f->places[ix] = (struct lull_chunk_place){ 0 };
	atomic_store_explicit(&c->committed, 0, memory_order_relaxed);
	/* Release: the producer that takes it finds it empty. */
	atomic_store_explicit(&c->state, LULL_CHUNK_FREE, memory_order_release);
	atomic_fetch_add_explicit(&f->head->n_free, 1, memory_order_release);
	/*
	 * Low chunks first keeps the memory in use small. Losing a race here costs a longer search,
	 * no more.
	 */
	if (ix < atomic_load_explicit(&f->head->chunk_hint, memory_order_relaxed))
		atomic_store_explicit(&f->head->chunk_hint, ix, memory_order_relaxed);
}

/* Free slots whose thread has ended and none of whose chunks is left. */
static void release_slots(struct lull_image_file *f)
{
	u8 has_chunk[LULL_N_SLOTS / 8] = { 0 };
	u32 n = n_used(f), n_slots = lull_image_n_slots(f);

	for (u32 i = 0; i < n; i++)
		if (atomic_load_explicit(&f->chunks[i].state, memory_order_acquire) !=
		    LULL_CHUNK_FREE)
			has_chunk[f->chunks[i].slot % LULL_N_SLOTS / 8] |=
				(u8)(1u << f->chunks[i].slot % 8);
	for (u32 i = 0; i < n_slots; i++)
		if (!(has_chunk[i / 8] & 1u << i % 8) &&
		    atomic_load_explicit(&f->slots[i].state, memory_order_acquire) ==
			    LULL_SLOT_ENDED)
			atomic_store_explicit(&f->slots[i].state, LULL_SLOT_FREE,
					      memory_order_release);
}

void lull_image_release(struct lull_image_file *f)
{
	u32 n = n_used(f);

	for (u32 i = 0; i < n; i++)
		if (f->places[i].is_done)
			release_chunk(f, i);
	f->unreleased_bytes = 0;
	release_slots(f);
}

void lull_image_resume(struct lull_image_file *f, u64 seq, u32 offset_bytes)
{
	u32 n = n_used(f);

	for (u32 i = 0; i < n; i++) {
		u32 state = atomic_load_explicit(&f->chunks[i].state, memory_order_acquire);

		if ((state == LULL_CHUNK_OWNED || state == LULL_CHUNK_FULL) &&
		    f->chunks[i].seq == seq)
			f->places[i].read_bytes = offset_bytes;
	}
}
