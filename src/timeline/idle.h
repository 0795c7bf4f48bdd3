/*
 * idle - when a device was busy and when it was idle, from work that arrives in almost any order.
 *
 *	lull_idle_init(&s, visit, ctx);
 *	lull_idle_add(&s, start, end);			(pieces of work)
 *	lull_idle_advance(&s, watermark);		(no work that starts earlier will follow)
 *	lull_idle_release(&s);				(after lull_idle_advance(&s, UINT64_MAX))
 *
 * What it gives:  busy pieces and the gaps between them, in the order of time.
 * Memory:         the pieces that start after the watermark.
 */
#ifndef LULL_TIMELINE_IDLE_H
#define LULL_TIMELINE_IDLE_H

#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"

/* Told each piece, busy or idle. */
typedef void lull_idle_visit(void *ctx, struct lull_span span, bool is_busy);

struct lull_idle_sweep {
	struct lull_vec pending; /* struct lull_span */
	struct lull_span run;	 /* the busy piece that grows */
	bool has_run;
	lull_idle_visit *visit;
	void *ctx;
};

/* Nothing met yet. */
void lull_idle_init(struct lull_idle_sweep *s, lull_idle_visit *visit, void *ctx);

/* Take a piece of work. */
void lull_idle_add(struct lull_idle_sweep *s, u64 start_ns, u64 end_ns);

/* Tell all that is certain when no piece will come that begins before `at_ns`. */
void lull_idle_advance(struct lull_idle_sweep *s, u64 at_ns);

/* Free everything. */
void lull_idle_release(struct lull_idle_sweep *s);

#endif
