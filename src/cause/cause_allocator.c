/*
 * allocator: device memory is allocated and freed in the middle of the loop.
 *
 * Signal:  the device is idle while the thread is in cudaMalloc, cudaFree, cudaHostAlloc or their
 *          like; frees wait for the device first.
 * Not it:  a framework's caching allocator, which makes no such calls once it is warm.
 */
#include "cause/cause.h"
#include "cause/replay/replay.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_CALL && lull_claim_node(c)->kind == LULL_KIND_OF_ALLOC;
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_path(w, i, LULL_CAUSE_IX_allocator, w->nodes[i].alloc_ns);
		if (w->nodes[i].kind == LULL_KIND_OF_ALLOC)
			lull_what_if_remove(w, i);
	}
}

const struct lull_cause lull_cause_allocator = {
	.id = "allocator",
	.title = "device memory is allocated and freed inside the loop",
	.because = "device memory is allocated and freed inside the loop",
	.because_once = "device memory is allocated and freed",
	.why = "On the machine where we measured it, cudaFree takes about 60 us and waits until "
	       "the device is idle; cudaMalloc takes about 100 us. A caching allocator that is "
	       "warmed up makes no such calls. They return with empty_cache(), with changing "
	       "shapes, or when memory runs out. Time in these calls counts while the device is "
	       "idle. The prediction removes the calls, and the operators that contain nothing "
	       "else.",
	.fix = "keep buffers and reuse them, or allocate from a pool with cudaMallocAsync()",
	.fix_torch = "no empty_cache() in the loop, fixed shapes, "
		     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_HOST,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(CALL),
	.claim = claim,
	.apply = apply,
};
