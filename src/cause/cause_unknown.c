/*
 * unknown: what cannot be told, and what was missing to tell.
 *
 * Signal:  none; it takes what nobody claims: work without a call, work that was held on the device
 *          for longer than 20 us, time of the thread that nobody recorded and that does not recur,
 *          stalls that are too few to judge.
 * Not it:  anything with a cause.
 */
#include "cause/cause.h"

static bool claim(const struct lull_claim *c)
{
	(void)c;
	return true;
}

const struct lull_cause lull_cause_unknown = {
	.id = "unknown",
	.title = "cannot be told from this recording",
	.because = "of something that this recording does not show",
	.why = "Time that nobody claims, with what was missing: the CUDA calls of the work; the other "
	       "stream, process or rank that held work on the device; what the thread did (record "
	       "samples, ranges, calls of the C library); more steps, to tell a stall from a habit. It "
	       "is never shown as healthy.",
	.fix = "record more: `lull profile` with its defaults, and more steps",
	.kind = LULL_CAUSE_BLIND,
	.claim = claim,
};
