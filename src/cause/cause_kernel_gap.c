/*
 * kernel-gap: the device's own pause between two pieces of queued work.
 *
 * Signal:  idle for less than 20 us, though the next work was launched before.
 * Not it:  longer pauses of that kind (unknown): something that is not in the recording held it.
 */
#include "cause/cause.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_DEVICE && c->to_ns - c->from_ns < LULL_TN(kernel_gap_ns);
}

const struct lull_cause lull_cause_kernel_gap = {
	.id = "kernel-gap",
	.title = "the device pauses between queued kernels",
	.because = "it pauses between kernels that are already queued",
	.why = "Between two kernels of a stream the device pauses for about 1 us, in a graph for "
	       "0.3 us. The host does not cause this, and the time counts as busy when lull "
	       "decides whether the device is busy.",
	.fix = "fewer, larger kernels; CUDA graphs",
	.kind = LULL_CAUSE_RESIDUE,
	.family = LULL_FAMILY_DEVICE,
	.places = LULL_PLACES_NONE,
	.is_pause = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(DEVICE),
	.claim = claim,
};
