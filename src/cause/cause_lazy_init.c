/*
 * lazy-init: code is loaded or compiled in the middle of the loop.
 *
 * Signal:  the device is idle while the thread is in a call that loads a module, while CUDA says
 *          that it loads or compiles code in a call; and, where no steps are known, in a call
 *          that takes far longer than others of its name.
 * Not it:  a compiler that the program itself calls (recompile); the first steps, which do so
 *          always: they are warm-up and left out.
 */
#include "cause/cause.h"
#include "cause/marks.h"
#include "cause/replay/replay.h"

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);

	if (c->place != LULL_PLACE_CALL && c->place != LULL_PLACE_LATENCY)
		return false;
	return node->kind == LULL_KIND_OF_MODULE || c->is_lazy || (c->marks & LULL_MARK_START_UP);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_lazy_init);
		if (w->nodes[i].kind == LULL_KIND_OF_MODULE)
			lull_what_if_remove(w, i);
		else if (w->replay->subject->chain.nodes[w->nodes[i].node].cause ==
			 LULL_CAUSE_IX_lazy_init)
			w->nodes[i].call_ns = w->replay->call_ns;
	}
}

const struct lull_cause lull_cause_lazy_init = {
	.id = "lazy-init",
	.title = "code is loaded or compiled in the middle of the loop",
	.because = "code is loaded or compiled in the middle of the loop",
	.because_once = "the device, its libraries and its kernels start up: calls take far longer "
			"than others of their name",
	.why = "The first launch of a kernel may load its module, compile it, or try variants of "
	       "it. In the first steps that is normal: step 0, and the steps right after it that "
	       "take more than 1.5 times the median, are left out. Counted are later ones: calls "
	       "that load modules, and calls in which CUDA reports loading or compiling. Where no "
	       "steps are known, start-up is counted too: calls of at least 1 ms that take 50 "
	       "times as long as the median of their name, or are made once.",
	.fix = "fixed shapes, so that nothing is loaded or compiled again; warm up before "
	       "measuring; CUDA_MODULE_LOADING=EAGER",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_LAUNCH,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(CALL) | LULL_AT(LATENCY),
	.claim = claim,
	.apply = apply,
};
