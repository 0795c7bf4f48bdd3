/*
 * pack - everything that a page needs to work without a server, as bytes.
 *
 *	u32 length of the JSON | JSON | lanes
 *
 * The JSON has the answers that do not depend on the view, the names, and the offsets of the lanes
 * and curves. A lane is columns of varints: starts (difference to the end of the previous one,
 * zigzag), lengths, names (indices into the list of names), classes, and for work and calls the key
 * that links them (process << 32 | correlation); if events were merged, also counts and busy shares
 * in 1/255. Times are in the unit of the plan.
 */
#ifndef LULL_PAGE_PACK_H
#define LULL_PAGE_PACK_H

#include "base/vec.h"
#include "page/page.h"

/* How much is kept. */
struct lull_pack_plan {
	struct lull_span window;  /* only what touches it */
	u32 unit_log2;		  /* times in 2^n ns */
	u64 max_records;	  /* of a lane; longer ones are folded to their first level below */
	const char *notice;	  /* what is left out, for the reader; may be NULL */
	struct lull_vec *answers; /* u8: those of an earlier plan for the window; empty at first */
};

/* Pack the first report of the page; `out` is bytes. */
int lull_page_pack(struct lull_page *page, const struct lull_pack_plan *plan, struct lull_vec *out,
		   struct lull_err *err);

#endif
