/*
 * gc: Python's garbage collector runs in the launching thread.
 *
 * Signal:  in a gap of at least 150 us the collector's range was recorded (our hooks), or most
 *          native samples are in the collector.
 * Not it:  short collections of young objects between launches.
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"

static bool claim(const struct lull_claim *c)
{
	return lull_claim_is_other(c) && (c->inside & LULL_IN_GC);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_gc);
}

const struct lull_cause lull_cause_gc = {
	.id = "gc",
	.title = "Python's garbage collector runs in the launching thread",
	.because = "Python's garbage collector runs in the launching thread",
	.why = "The collector stops the thread that happens to allocate. A full collection visits "
	       "every object of the program: with millions of them it takes hundreds of "
	       "milliseconds. Counted are gaps of at least 150 us in which Python says that it "
	       "collects, or in which more than half of the native samples are in its collector.",
	.fix = "gc.freeze() after setting up and gc.disable() around the loop, with a collection "
	       "where it does not matter; no gc.collect() in the loop",
	.assumes = "nothing has to be collected in the loop",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "garbage collection",
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
};
