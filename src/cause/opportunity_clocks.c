/*
 * clocks: power or temperature holds the clock down while the device works.
 *
 * Signal:  readings that say so, and a mean clock below the highest.
 * Not it:  full clock at the power limit; a low clock without a reason, which somebody may have
 *          set.
 */
#include <math.h>
#include <stdio.h>

#include "cause/opportunity.h"
#include "cause/thresholds.h"

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	const struct lull_reading *at = l->readings.at;
	f64 power = at[LULL_READING_HELD_POWER].mean, heat = at[LULL_READING_HELD_HEAT].mean;
	bool is_heat = heat > power;

	if (!at[LULL_READING_CLOCK].n || fmax(power, heat) < LULL_T(throttled) * 100)
		return false;
	o->touched_ns = l->why->compute_share * l->why->step_ns;
	snprintf(o->text, sizeof(o->text),
		 "%s holds the clock down %.0f %% of the time: %.0f of %.0f MHz on average",
		 is_heat ? "temperature" : "the power limit", fmax(power, heat),
		 at[LULL_READING_CLOCK].mean * l->readings.highest_hz / 1e6,
		 l->readings.highest_hz / 1e6);
	if (is_heat)
		snprintf(o->fix, sizeof(o->fix), "better cooling");
	return at[LULL_READING_CLOCK].mean < 1;
}

/* Memory has a clock of its own: what it limits stays as it is. */
static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	f64 part = l->readings.at[LULL_READING_CLOCK].mean;

	for (u32 i = 0; i < w->n_ops; i++) {
		const struct lull_unit *unit = &l->subject->units.at[w->ops[i].unit];

		if (unit->kind == LULL_UNIT_KERNEL &&
		    !lull_kernel_is_light((enum lull_kernel_class)unit->class))
			w->ops[i].dur_ns *= part;
	}
}

const struct lull_opportunity_kind lull_opportunity_clocks = {
	.id = "clocks",
	.title = "the clock is held down",
	.why = "As the cause throttled, but also where the clock is only somewhat lower, which is "
	       "what hard work at the power limit looks like. The prediction scales all kernels "
	       "with the clock, except those that memory limits.",
	.fix = "a higher power limit, or work that takes less power: narrower types, fewer bytes",
	.assumes = "kernels are as much faster as the clock is higher",
	.causes = "throttled",
	.is_ceiling = true,
	.look = look,
	.apply = apply,
};
