/*
 * unified-memory: pages of managed memory move between host and device while nothing computes.
 *
 * Signal:  a copy from or to managed memory runs, and nothing else; or launched work does not begin
 *          while pages move; or the thread, in a long gap, mostly waits for pages that it touches.
 *          A busy device whose pages move for a fifth of the step is named, too: its kernels wait
 *          for them.
 * Not it:  a few pages that move under kernels; copies that the program asked for.
 */
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "model/thread/doing.h"

static bool claim(const struct lull_claim *c)
{
	if (c->place == LULL_PLACE_GAP)
		return c->is_moving || (lull_claim_is_other(c) && (c->inside & LULL_IN_MANAGED));
	if (c->place == LULL_PLACE_LATENCY || c->place == LULL_PLACE_DEVICE)
		return c->is_moving;
	return c->place == LULL_PLACE_COPY && lull_copy_is_managed(lull_claim_copy(c));
}

/* Prefetched, pages move beside the kernels. */
static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_unified_memory);
		if (w->nodes[i].flags & LULL_NODE_MANAGED)
			lull_what_if_remove(w, i);
	}
}

static const char *table(const struct lull_subject *s)
{
	(void)s;
	return "memcpy";
}

/* Pages move for much of a busy device's step. */
static f64 busy(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;

	if ((f64)s->moved_ns < LULL_T(moving) * (f64)s->window_ns)
		return 0;
	return (f64)s->moved_ns / lull_why_n_steps(why);
}

/* Where the host is what touches the pages, most of it is better done by a kernel. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	const struct lull_subject *s = why->lead;
	const struct lull_slice *at = s->slices.at;
	u64 sum_ns = 0;

	(void)is_torch;
	for (size_t i = 0; i < s->slices.n; i++) {
		if (at[i].cause == LULL_CAUSE_IX_unified_memory)
			sum_ns += at[i].to_ns - at[i].from_ns;
	}
	if (sum_ns * 2 <= s->cost_ns[LULL_CAUSE_IX_unified_memory])
		return;
	snprintf(advice->fix, sizeof(advice->fix),
		 "do in a kernel what the host does with this memory, so that its pages stay on "
		 "the device; else cudaMemPrefetchAsync() to the side that uses it next, or "
		 "explicit copies from pinned memory");
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	u64 from_ns = lull_round_begin_ns(&why->lead->rounds, why->lead->rounds.first_steady);
	u64 n = lull_subject_faults(why->lead, from_ns, UINT64_MAX);

	if (n)
		lull_show(f, "um_event", NULL, "%.0f page faults of the host per step",
			  (f64)n / lull_why_n_steps(why));
	if (why->lead->moved_ns)
		lull_show(f, "um_event", NULL, "pages of managed memory move for %s of each step",
			  lull_why_time((f64)why->lead->moved_ns / lull_why_n_steps(why)).text);
}

const struct lull_cause lull_cause_unified_memory = {
	.id = "unified-memory",
	.title = "pages of managed memory move while nothing computes",
	.because = "pages of managed memory move between host and device",
	.why = "Memory from cudaMallocManaged moves page by page when the host or the device "
	       "accesses it. Time counts in which such a move runs and no kernel does, and gaps "
	       "in which moves, and faults of the host at 20 us each, fill at least half, or most "
	       "native samples are in the driver's code for such faults. Page "
	       "faults that stall a running kernel make that kernel longer and are not visible "
	       "here.",
	.fix = "cudaMemPrefetchAsync() before the kernels that use it, or explicit copies from "
	       "pinned memory",
	.assumes = "all pages have moved before they are needed; kernels that wait for pages now "
		   "get shorter, too, which is not counted",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_COPY,
	.needs = LULL_NEED_WORK,
	.claims_at = LULL_AT(COPY) | LULL_AT(GAP) | LULL_AT(LATENCY) | LULL_AT(DEVICE),
	.claim = claim,
	.apply = apply,
	.busy = busy,
	.table = table,
	.prove = prove,
	.suit = suit,
};
