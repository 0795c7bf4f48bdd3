/*
 * Memory that the program frees is kept for its next request of the same size.
 *
 * The driver's cuMemFree() waits until the device no longer uses the memory. Here, events are
 * recorded where it is freed: on the default stream, which waits for all others but those that were
 * made not to, and on each of these. Memory is used again once all events are over.
 */
#include "mend/mend.h"

#include <pthread.h>
#include <string.h>

#define NO_TIMING 2u

/* Blocks that are kept at most; of one size, before a request waits for the oldest of them. */
#define MOST_KEPT 1024
#define MOST_SAME 8

/* Blocks that the program has. One that is not in the table is given back to the driver. */
#define MOST_LIVE 16384

/* The share of the device's memory that may be kept. */
#define KEPT_SHARE 4

struct block {
	u64 at; /* 0: none */
	size_t bytes;
	void *context;
	void *events[LULL_MEND_STREAMS + 1];
	size_t n_events;
};

static struct {
	pthread_mutex_t lock;
	struct block kept[MOST_KEPT]; /* the oldest first */
	size_t n_kept, kept_bytes, most_bytes;
	struct block live[MOST_LIVE]; /* by address, with linear probing */
	size_t n_live;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- blocks that the program has ---- */

static size_t slot_of(u64 at)
{
	return (size_t)((at >> 8) * 0x9e3779b97f4a7c15ULL >> 40) % MOST_LIVE;
}

static void add_live(u64 at, size_t bytes, void *context)
{
	size_t slot = slot_of(at);

	if (pool.n_live > MOST_LIVE / 2)
		return;
	while (pool.live[slot].at)
		slot = (slot + 1) % MOST_LIVE;
	pool.live[slot] = (struct block){ .at = at, .bytes = bytes, .context = context };
	pool.n_live++;
}

/* Remove the block from the table; false if it is not there. */
static bool take_live(u64 at, struct block *found)
{
	size_t slot = slot_of(at), next;

	while (pool.live[slot].at && pool.live[slot].at != at)
		slot = (slot + 1) % MOST_LIVE;
	if (!pool.live[slot].at)
		return false;
	*found = pool.live[slot];
	pool.live[slot].at = 0;
	pool.n_live--;
	/* Those after it may have wanted its place. */
	for (next = (slot + 1) % MOST_LIVE; pool.live[next].at; next = (next + 1) % MOST_LIVE) {
		struct block moved = pool.live[next];

		pool.live[next].at = 0;
		pool.n_live--;
		add_live(moved.at, moved.bytes, moved.context);
	}
	return true;
}

/* ---- blocks that are kept ---- */

static void end_events(const struct lull_driver *d, struct block *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		d->cuEventDestroy_v2(b->events[i]);
	b->n_events = 0;
}

/* Record where all work is that may use the block. */
static bool mark(const struct lull_driver *d, struct block *b)
{
	size_t n;
	void *const *streams = lull_mend_streams(&n);

	if (!streams)
		return false;
	for (size_t i = 0; i <= n; i++) {
		void *event, *stream = i ? streams[i - 1] : NULL;
		int status = 0;

		/* An event must not become part of a graph, nor end its making. */
		if (d->cuStreamIsCapturing(stream, &status) != LULL_CUDA_OK || status ||
		    d->cuEventCreate(&event, NO_TIMING) != LULL_CUDA_OK)
			return false;
		b->events[b->n_events++] = event;
		if (d->cuEventRecord(event, stream) != LULL_CUDA_OK)
			return false;
	}
	return true;
}

static bool is_over(const struct lull_driver *d, const struct block *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (d->cuEventQuery(b->events[i]) != LULL_CUDA_OK)
			return false;
	return true;
}

static bool wait_for(const struct lull_driver *d, const struct block *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (d->cuEventSynchronize(b->events[i]) != LULL_CUDA_OK)
			return false;
	return true;
}

static void remove_kept(size_t ix)
{
	pool.kept_bytes -= pool.kept[ix].bytes;
	memmove(pool.kept + ix, pool.kept + ix + 1, (--pool.n_kept - ix) * sizeof(*pool.kept));
}

/* A block of this size that the device no longer uses; 0 if there is none. */
static u64 reuse(const struct lull_driver *d, size_t bytes, void *context)
{
	size_t n_same = 0, oldest = MOST_KEPT;

	for (size_t i = 0; i < pool.n_kept; i++) {
		struct block *b = &pool.kept[i];

		if (b->bytes != bytes || b->context != context)
			continue;
		oldest = n_same++ ? oldest : i;
		if (is_over(d, b)) {
			oldest = i;
			n_same = MOST_SAME;
		}
		if (n_same >= MOST_SAME) {
			struct block taken = pool.kept[oldest];

			if (!wait_for(d, &taken))
				return 0;
			end_events(d, &taken);
			remove_kept(oldest);
			return taken.at;
		}
	}
	return 0;
}

static void clear(const struct lull_driver *d)
{
	while (pool.n_kept) {
		struct block *b = &pool.kept[pool.n_kept - 1];

		end_events(d, b);
		d->cuMemFree_v2(b->at);
		remove_kept(pool.n_kept - 1);
	}
}

/* ---- what the program calls ---- */

int lull_pool_alloc(const struct lull_driver *d, u64 *at, size_t bytes)
{
	void *context = NULL;
	int result;
	u64 found;

	d->cuCtxGetCurrent(&context);
	pthread_mutex_lock(&pool.lock);
	found = bytes && at ? reuse(d, bytes, context) : 0;
	if (found) {
		*at = found;
		result = LULL_CUDA_OK;
		lull_mend_did(LULL_MEND_POOL);
	} else {
		result = d->cuMemAlloc_v2(at, bytes);
		if (result == LULL_CUDA_OUT_OF_MEMORY && pool.n_kept) {
			clear(d);
			result = d->cuMemAlloc_v2(at, bytes);
		}
	}
	if (result == LULL_CUDA_OK && at)
		add_live(*at, bytes, context);
	pthread_mutex_unlock(&pool.lock);
	return result;
}

int lull_pool_free(const struct lull_driver *d, u64 at)
{
	struct block b;
	size_t free_bytes = 0, all_bytes = 0;
	void *context = NULL;
	bool is_kept;

	d->cuCtxGetCurrent(&context);
	pthread_mutex_lock(&pool.lock);
	if (!pool.most_bytes && d->cuMemGetInfo_v2(&free_bytes, &all_bytes) == LULL_CUDA_OK)
		pool.most_bytes = all_bytes / KEPT_SHARE;
	is_kept = take_live(at, &b) && b.context == context && pool.n_kept < MOST_KEPT &&
		  pool.kept_bytes + b.bytes <= pool.most_bytes;
	if (is_kept) {
		is_kept = mark(d, &b);
		if (!is_kept)
			end_events(d, &b);
	}
	if (is_kept) {
		pool.kept[pool.n_kept++] = b;
		pool.kept_bytes += b.bytes;
	}
	pthread_mutex_unlock(&pool.lock);
	return is_kept ? LULL_CUDA_OK : d->cuMemFree_v2(at);
}

void lull_pool_clear(const struct lull_driver *d)
{
	pthread_mutex_lock(&pool.lock);
	clear(d);
	pthread_mutex_unlock(&pool.lock);
}
