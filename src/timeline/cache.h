/*
 * cache - the blocks of a report as events on lanes: the last ones used, and prefetched ones.
 *
 * Blocks around the last view are decoded ahead, one at a time, by an idle thread.
 *
 * Memory:         48 MB.
 * Threads:        one at a time.
 */
#ifndef LULL_TIMELINE_CACHE_H
#define LULL_TIMELINE_CACHE_H

#include "timeline/timeline.h"

struct lull_cache;

/* An empty one; the timeline must live longer. */
struct lull_cache *lull_cache_new(struct lull_timeline *t);

/* Free it. Accepts NULL. */
void lull_cache_free(struct lull_cache *d);

/* Told each event with its block. */
typedef void lull_cache_visit(void *ctx, const struct lull_tl_event *event, size_t block_ix);

/* Visit the events of a lane of a table that touch `span`. */
void lull_cache_each(struct lull_cache *d, u32 lane, struct lull_span span, lull_cache_visit *fn,
		     void *ctx);

/*
 * A lane is looked at, at this level: views next to this one need its blocks if the lane's own
 * levels end here, or one finer.
 */
void lull_cache_wish(struct lull_cache *d, const struct lull_tl_lane *lane, struct lull_span span,
		     u32 log2);

/* Decode one block that was wished for and is not there; false if there is none. */
bool lull_cache_ahead(struct lull_cache *d);

/* The device of a group of events, as LULL_GROUP_DEVICE + its row. */
u32 lull_cache_device(const struct lull_cache *d, u32 group);

#endif
