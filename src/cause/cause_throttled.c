/*
 * throttled: the device is busy, but its clock is held down.
 *
 * Signal:  the device is busy, and in at least a fifth of the readings its clock is under 0.9 of
 *          the highest, or under 0.7 if the power limit is the only reason it gives. Where no clock
 *          was read: it gives a reason for a lower one.
 * Not it:  a low clock of an idle device; a reading or two; the power limit at nearly full clock,
 *          which is what hard work looks like.
 */
#include "cause/cause.h"
#include "cause/replay.h"

/* All kernels as much faster as the clock would be higher. */
static void apply(struct lull_what_if *w)
{
	f64 part = w->replay->clock_part > 0 ? w->replay->clock_part : 1;

	for (u32 i = 0; i < w->n_ops; i++)
		w->ops[i].dur_ns *= 1 - (1 - part) * w->factor;
}

const struct lull_cause lull_cause_throttled = {
	.id = "throttled",
	.title = "the device is busy at a lowered clock",
	.because = "its clock is held down by power or heat",
	.why = "A device lowers its clock when it gets too hot or takes too much power. Counted "
	       "are readings in the steady steps with a clock under 0.9 of the device's highest "
	       "(0.7 if only the power limit holds it down), if the device is busy. The "
	       "prediction scales kernels with the clock, which is the best that could be: memory "
	       "has a clock of its own.",
	.fix = "better cooling, a higher power limit, or note it beside every measurement",
	.assumes = "kernels follow the clock",
	.kind = LULL_CAUSE_BUSY,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_COUNTERS,
	.apply = apply,
};
