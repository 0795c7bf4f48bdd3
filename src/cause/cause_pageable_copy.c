/*
 * pageable-copy: data comes from or goes to ordinary memory: the copy is slow, the call blocks.
 *
 * Signal:  a copy to the device from pageable memory runs alone, or the device is idle while the
 *          thread is inside such a call for more than 50 us (it stages the data), or waits for it;
 *          a copy of at least 1 MiB to pageable memory runs alone, where at least half as much
 *          comes back (activations that are parked on the host).
 * Not it:  pinned memory; small copies, whose call returns at once; results that are copied to the
 *          host, which somebody waits for (host-sync).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool is_pageable_in(const struct lull_node *node)
{
	return node && (node->flags & LULL_NODE_PAGED) && !(node->flags & LULL_NODE_OUT);
}

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);

	switch (c->place) {
	case LULL_PLACE_COPY: {
		const struct lull_copy *copy = lull_claim_copy(c);

		return lull_copy_is_pageable(copy) &&
		       (copy->direction == LULL_COPY_IN ||
			(copy->direction == LULL_COPY_OUT && c->subject->is_parking &&
			 copy->size_bytes >= LULL_TN(bulk_bytes)));
	}
	case LULL_PLACE_CALL:
		return (node->flags & LULL_NODE_OWNED) ||
		       ((is_pageable_in(node) || lull_call_copies_out(c->subject, c->node)) &&
			node->end_ns - node->begin_ns > LULL_TN(staging_ns));
	case LULL_PLACE_LATENCY:
		return is_pageable_in(node) && c->to_ns - c->from_ns >= LULL_TN(staging_ns);
	default:
		return false;
	}
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		bool is_in = (w->nodes[i].flags & LULL_NODE_PAGED) &&
			     !(w->nodes[i].flags & LULL_NODE_OUT);

		if (is_in || lull_call_copies_out(w->replay->subject, w->nodes[i].node))
			lull_what_if_pin(w, i);
		if (w->nodes[i].flags & LULL_NODE_OWNED)
			lull_what_if_remove(w, i);
	}
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	lull_show_copies(why, f, true, LULL_COPY_IN);
	lull_show_copies(why, f, true, LULL_COPY_OUT);
}

const struct lull_cause lull_cause_pageable_copy = {
	.id = "pageable-copy",
	.title = "copies from or to ordinary memory are slow and block the thread",
	.because = "data is copied from or to ordinary (pageable) memory, which is slow and blocks "
		   "the thread",
	.why = "The device cannot read or write pageable memory. The driver copies by a pinned "
	       "buffer of its own, piece by piece, and the call returns when that is done, "
	       "asynchronous or not. Counted: time in which such a copy runs alone (to the host "
	       "from 1 MiB on, if at least half as much comes back), time in the call beyond 50 us "
	       "while the device is idle, and the "
	       "wait that frameworks add after it. The "
	       "prediction uses the speed of the fastest pinned copy of at least 4 MiB in the "
	       "recording, or else the known speed of the device's link.",
	.fix = "pinned memory (cudaHostAlloc(), cudaHostRegister()) and cudaMemcpyAsync()",
	.fix_torch = "pinned memory and asynchronous copies: DataLoader(pin_memory=True), "
		     ".to(device, non_blocking=True)",
	.assumes = "pinned memory is filled by other threads",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_COPY,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(COPY) | LULL_AT(CALL) | LULL_AT(LATENCY),
	.claim = claim,
	.apply = apply,
	.prove = prove,
};
