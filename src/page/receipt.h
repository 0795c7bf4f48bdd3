/*
 * receipt - where the time of any span went: what devices did and waited for, what threads did.
 *
 *	lull_receipt_sum(&sums, timeline, row_ix, span);
 *
 * Clipped:        of what reaches over an edge of the span, the part inside counts.
 * Steps:          need not be there: start-up and programs of one step are explained, too.
 * Cost:           linear in the events of the span; lanes with too many are summed by their folds,
 *                 which say how long, but not exactly of what.
 */
#ifndef LULL_PAGE_RECEIPT_H
#define LULL_PAGE_RECEIPT_H

#include "base/map.h"
#include "base/vec.h"
#include "text/json.h"
#include "timeline/detail.h"

/* All events of one name. */
struct lull_receipt_item {
	u32 name; /* timeline/name.h */
	u8 class;
	u64 ns; /* inside the span */
	u64 n;	/* that touch it */
};

struct lull_receipt_sums {
	struct lull_vec items; /* struct lull_receipt_item */
	struct lull_map known; /* private */
	u64 ns, n;
	u64 longest_ns;		   /* of one event, inside the span */
	struct lull_found longest; /* that one; only if longest_ns */
	bool is_folded;
};

/* Begin with nothing. */
void lull_receipt_init(struct lull_receipt_sums *s);

/* Free it. */
void lull_receipt_release(struct lull_receipt_sums *s);

/* Add a lane's events. */
void lull_receipt_lane(struct lull_receipt_sums *s, struct lull_timeline *t, u32 lane,
		       struct lull_span span);

/* Add to an item of this name. */
void lull_receipt_add(struct lull_receipt_sums *s, u32 name, u8 class, u64 ns, u64 n);

/* Largest first. */
void lull_receipt_sort(struct lull_receipt_sums *s);

/* Write into an open array: the name of what was summed, its class, its time and how often. */
void lull_receipt_put_item(struct lull_json *j, struct lull_timeline *t,
			   const struct lull_receipt_item *item);

/* The first names as "top": [[name, class, ns, n], ...]. */
void lull_receipt_put_top(struct lull_json *j, struct lull_timeline *t,
			  const struct lull_receipt_sums *s, size_t max);

#endif
