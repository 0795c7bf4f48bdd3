/*
 * sweep - things that hold for some time each, walked by time.
 *
 *	lull_sweep_add(&edges, from_ns, to_ns, what);
 *	lull_sweep(&edges, visit, ctx);
 *
 * visit() is called for each piece of time in which the same things hold: counts[what] of each.
 */
#ifndef LULL_REQUEST_SWEEP_H
#define LULL_REQUEST_SWEEP_H

#include "base/types.h"
#include "base/vec.h"

/* More kinds of things than anybody has. */
#define LULL_SWEEP_MAX 32

struct lull_edge {
	u64 at_ns;
	u8 what; /* below LULL_SWEEP_MAX */
	u8 is_end;
};

typedef void lull_sweep_fn(void *ctx, u64 from_ns, u64 to_ns, const u32 *counts);

/* Something holds from from_ns to to_ns; nothing if that is empty. `edges`: struct lull_edge. */
void lull_sweep_add(struct lull_vec *edges, u64 from_ns, u64 to_ns, u8 what);

/* Sort the edges and visit each piece of time between the first and the last. */
void lull_sweep(struct lull_vec *edges, lull_sweep_fn *visit, void *ctx);

#endif
