/*
 * unified-memory: pages of managed memory move between host and device while nothing computes.
 *
 * Signal:  a copy from or to managed memory runs, and nothing else.
 * Not it:  a copy of managed memory under a kernel; copies that the program asked for.
 */
#include "cause/cause.h"
#include "cause/replay.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_COPY && lull_copy_is_managed(lull_claim_copy(c));
}

/* Prefetched, pages move beside the kernels. */
static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		if (w->nodes[i].flags & LULL_NODE_MANAGED)
			lull_what_if_remove(w, i);
	}
}

const struct lull_cause lull_cause_unified_memory = {
	.id = "unified-memory",
	.title = "pages of managed memory move while nothing computes",
	.because = "pages of managed memory move between host and device",
	.why = "Memory from cudaMallocManaged moves page by page when somebody touches it. Time counts "
	       "in which such a move runs and no kernel does. Page faults that stall a running kernel "
	       "make that kernel longer and are not seen here.",
	.fix = "cudaMemPrefetchAsync() before the kernels that use it, or explicit copies from "
	       "pinned memory",
	.assumes = "all pages are there before they are needed",
	.kind = LULL_CAUSE_SPECIFIC,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK,
	.claim = claim,
	.apply = apply,
};
