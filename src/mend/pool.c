/*
 * Memory that the program frees is kept for its next request of the same size.
 *
 * The driver's cuMemFree() waits until the device no longer uses the memory. Here, events are
 * recorded after it is freed: on the default stream, which waits for all others but those that were
 * made not to, and on each of these. Memory is used again once all events are over.
 *
 * Programs free several blocks at a time. These share their events, which are recorded with the
 * next request for memory: later than they need to be, never earlier.
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

/* Blocks that were freed together wait together. */
#define MOST_GROUPS 64

/* Instead of a group: freed since the last request; and: no longer used by the device. */
#define FRESH MOST_GROUPS
#define OVER  (MOST_GROUPS + 1)

struct block {
	u64 at; /* 0: none */
	size_t bytes;
	void *context;
	size_t group;
};

/* Events after the last use of some blocks. */
struct group {
	void *events[LULL_MEND_STREAMS + 1];
	size_t n_events; /* 0: not in use */
};

static struct {
	pthread_mutex_t lock;
	struct block kept[MOST_KEPT]; /* the oldest first */
	size_t n_kept, kept_bytes, most_bytes, n_fresh;
	struct group groups[MOST_GROUPS];
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

/* ---- events ---- */

static void end_events(const struct lull_driver *d, struct group *g)
{
	for (size_t i = 0; i < g->n_events; i++)
		d->cuEventDestroy_v2(g->events[i]);
	g->n_events = 0;
}

/* Record where all work is that may use blocks that are freed by now. */
static bool mark(const struct lull_driver *d, struct group *g)
{
	size_t n;
	void *const *streams = lull_mend_streams(&n);

	for (size_t i = 0; streams && i <= n; i++) {
		void *event;

		if (d->cuEventCreate(&event, NO_TIMING) != LULL_CUDA_OK)
			return false;
		g->events[g->n_events++] = event;
		if (d->cuEventRecord(event, i ? streams[i - 1] : NULL) != LULL_CUDA_OK)
			return false;
	}
	return streams;
}

/* An event must not become part of a graph, nor end its making. */
static bool is_captured(const struct lull_driver *d)
{
	size_t n;
	void *const *streams = lull_mend_streams(&n);

	for (size_t i = 0; streams && i <= n; i++) {
		int status = 0;

		if (d->cuStreamIsCapturing(i ? streams[i - 1] : NULL, &status) != LULL_CUDA_OK ||
		    status)
			return true;
	}
	return !streams;
}

static bool is_over(const struct lull_driver *d, const struct group *g)
{
	for (size_t i = 0; i < g->n_events; i++)
		if (d->cuEventQuery(g->events[i]) != LULL_CUDA_OK)
			return false;
	return true;
}

static bool wait_for(const struct lull_driver *d, const struct group *g)
{
	for (size_t i = 0; i < g->n_events; i++)
		if (d->cuEventSynchronize(g->events[i]) != LULL_CUDA_OK)
			return false;
	return true;
}

/* ---- blocks that are kept ---- */

static void remove_kept(size_t ix)
{
	pool.n_fresh -= pool.kept[ix].group == FRESH;
	pool.kept_bytes -= pool.kept[ix].bytes;
	memmove(pool.kept + ix, pool.kept + ix + 1, (--pool.n_kept - ix) * sizeof(*pool.kept));
}

/* The device no longer uses blocks of this group. */
static void end_group(const struct lull_driver *d, size_t group)
{
	end_events(d, &pool.groups[group]);
	for (size_t i = 0; i < pool.n_kept; i++)
		if (pool.kept[i].group == group)
			pool.kept[i].group = OVER;
}

/* Give blocks that were freed since the last request to the driver, which waits. */
static void give_back_fresh(const struct lull_driver *d)
{
	for (size_t i = pool.n_kept; i-- > 0;) {
		u64 at = pool.kept[i].at;

		if (pool.kept[i].group != FRESH)
			continue;
		remove_kept(i);
		d->cuMemFree_v2(at);
	}
}

/* A group that is not in use; MOST_GROUPS if all are. */
static size_t find_group(const struct lull_driver *d)
{
	for (size_t i = 0; i < MOST_GROUPS; i++) {
		struct group *g = &pool.groups[i];

		if (g->n_events && is_over(d, g))
			end_group(d, i);
		if (!g->n_events)
			return i;
	}
	return MOST_GROUPS;
}

/* Make a group of the blocks that were freed since the last request. */
static void group_fresh(const struct lull_driver *d, void *context)
{
	size_t group;

	for (size_t i = 0; i < pool.n_kept; i++)
		if (pool.kept[i].group == FRESH && pool.kept[i].context != context)
			return;
	if (!pool.n_fresh || is_captured(d))
		return;
	group = find_group(d);
	if (group == MOST_GROUPS)
		return;
	if (!mark(d, &pool.groups[group])) {
		end_events(d, &pool.groups[group]);
		give_back_fresh(d);
		return;
	}
	for (size_t i = 0; i < pool.n_kept; i++)
		if (pool.kept[i].group == FRESH)
			pool.kept[i].group = group;
	pool.n_fresh = 0;
}

static u64 take(size_t ix)
{
	u64 at = pool.kept[ix].at;

	remove_kept(ix);
	return at;
}

/* A block of this size that the device no longer uses; 0 if there is none. */
static u64 reuse(const struct lull_driver *d, size_t bytes, void *context)
{
	size_t n_same = 0, asked = MOST_GROUPS, oldest = 0;

	for (size_t i = 0; i < pool.n_kept; i++) {
		const struct block *b = &pool.kept[i];

		if (b->bytes != bytes || b->context != context || b->group == FRESH)
			continue;
		if (b->group != OVER && b->group != asked && is_over(d, &pool.groups[b->group]))
			end_group(d, b->group);
		if (b->group == OVER)
			return take(i);
		asked = b->group;
		oldest = n_same++ ? oldest : i;
	}
	if (n_same < MOST_SAME || !wait_for(d, &pool.groups[pool.kept[oldest].group]))
		return 0;
	end_group(d, pool.kept[oldest].group);
	return take(oldest);
}

static void clear(const struct lull_driver *d)
{
	for (size_t i = 0; i < MOST_GROUPS; i++)
		end_events(d, &pool.groups[i]);
	while (pool.n_kept) {
		d->cuMemFree_v2(pool.kept[pool.n_kept - 1].at);
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
	group_fresh(d, context);
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
		  pool.kept_bytes + b.bytes <= pool.most_bytes && !is_captured(d);
	if (is_kept) {
		b.group = FRESH;
		pool.n_fresh++;
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
