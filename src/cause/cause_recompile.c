/*
 * recompile: device code is compiled again in the middle of the loop.
 *
 * Signal:  in a gap of at least 150 us of a steady step the thread is in a compiler's code
 *          (torch.compile, Triton, NVRTC), or a call there loads a module.
 * Not it:  the first steps, which are warm-up; what CUDA itself loads in a call (lazy-init).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);

	if (!(c->inside & LULL_IN_COMPILE))
		return false;
	if (c->place == LULL_PLACE_GAP)
		return c->gap_ns >= LULL_TN(gap_long_ns);
	return c->place == LULL_PLACE_CALL && node->kind == LULL_KIND_OF_MODULE;
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_recompile);
		if (w->nodes[i].kind == LULL_KIND_OF_MODULE &&
		    (w->nodes[i].inside & LULL_IN_COMPILE))
			lull_what_if_remove(w, i);
	}
}

const struct lull_cause lull_cause_recompile = {
	.id = "recompile",
	.title = "device code is compiled again in the middle of the loop",
	.because = "device code is compiled again in the middle of the loop",
	.why = "torch.compile and Triton compile a function again when a shape, a type or a value "
	       "that they took for constant changes; programs with NVRTC do so when they ask for "
	       "it. In the first steps that is normal: step 0, and the steps right after it that "
	       "take more than 1.5 times the median, are left out. Counted are gaps of at least "
	       "150 us in which ranges or most samples are in a compiler's code, and the loading "
	       "of modules there.",
	.fix = "compile for all shapes once: pad to a few sizes, keep compiled code and reuse it",
	.fix_torch =
		"mark what changes (torch._dynamo.mark_dynamic, torch.compile(dynamic=True)) or "
		"pad to a few sizes; TORCH_LOGS=recompiles says what changed",
	.assumes = "nothing is compiled after warm-up",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "in a compiler",
	.family = LULL_FAMILY_LAUNCH,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claim = claim,
	.apply = apply,
};
