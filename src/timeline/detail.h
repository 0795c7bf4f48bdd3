/*
 * detail - what happened on a lane in a window of time, at any level of detail.
 *
 * Coarse levels come from the levels of the lane. Finer ones are read from the blocks of the
 * report, and the decoded blocks that were used last are kept (48 MB). Those that the next move or
 * zoom will need are decoded ahead, by an idle thread.
 */
#ifndef LULL_TIMELINE_DETAIL_H
#define LULL_TIMELINE_DETAIL_H

#include "timeline/timeline.h"

/* The blocks of a timeline. */
struct lull_detail *lull_detail_new(struct lull_timeline *t);

/* Free it. Accepts NULL. */
void lull_detail_free(struct lull_detail *d);

/*
 * Fold what touches `span` on a lane, at the level that `fold` was begun with; it is finished here.
 */
void lull_detail_fold(struct lull_timeline *t, u32 lane, struct lull_span span,
		      struct lull_fold *fold);

/*
 * Decode one block that lies around what was folded last and is not there yet; false if there is
 * none. Takes a millisecond or two.
 */
bool lull_detail_ahead(struct lull_timeline *t);

/* An event, and where its row is in the report. */
struct lull_found {
	struct lull_tl_event event;
	u32 lane;
	size_t block_ix; /* of lull_reader_blocks(); the row is event.row */
	bool has_row;	 /* false for idle and busy time, which are no rows */
};

/* The device of a group of events, as LULL_GROUP_DEVICE + its row; no device if it is a thread. */
u32 lull_detail_device(const struct lull_timeline *t, u32 group);

/*
 * The events (struct lull_found) that touch `span` on a lane, by start, up to `limit`; idle and
 * busy pieces have their full length. `out` is not cleared.
 */
void lull_detail_events(struct lull_timeline *t, u32 lane, struct lull_span span, size_t limit,
			struct lull_vec *out);

#endif
