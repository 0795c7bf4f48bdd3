/*
 * throttled: the device is busy, but its clock is held down.
 *
 * Signal:  the device is busy, and in at least a fifth of the readings its clock is under 0.9 of
 *          the highest, or under 0.7 if the power limit is the only reason it gives. Where no clock
 *          was read: it gives a reason for a lower one.
 * Not it:  a low clock of an idle device; a reading or two; the power limit at nearly full clock,
 *          which is what hard work looks like.
 */
#include <string.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/readings.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

/* All kernels as much faster as the clock would be higher. */
static void apply(struct lull_what_if *w)
{
	f64 part = w->replay->clock_part > 0 ? w->replay->clock_part : 1;

	for (u32 i = 0; i < w->n_ops; i++)
		w->ops[i].dur_ns *= part;
}

/* What the readings of the clocks say, all in the steady steps. */
struct clock_readings {
	u64 n_reasons, n_held; /* readings of a reason for a lower clock; those that give it */
	u64 n_power;	       /* of n_held: the power limit */
	u64 n_clocks, n_low, n_very_low;
	f64 part_sum; /* of clock over the highest */
	f64 highest_hz;
};

static void add_reading(void *ctx, const char *name, f64 value, f64 hz)
{
	struct clock_readings *all = ctx;

	if (strcasestr(name, "throttle")) {
		all->n_reasons++;
		all->n_held += value > 0;
		all->n_power += value > 0 && strcasestr(name, "power");
	} else if (strcasestr(name, "clock") &&
		   (strcasestr(name, "sm") || strcasestr(name, "graphics"))) {
		f64 part = all->highest_hz > 0 ? value * hz / all->highest_hz : 1;

		all->n_clocks += all->highest_hz > 0;
		all->part_sum += part;
		all->n_low += part < LULL_T(clock_low);
		all->n_very_low += part < LULL_T(clock_capped);
	}
}

/*
 * A device that works hard reaches its power limit at nearly full clock: that is no trouble, and so
 * it takes more of the clock if power is the reason.
 */
static f64 held_share(const struct clock_readings *all)
{
	if (all->n_clocks)
		return (f64)(all->n_held && all->n_held == all->n_power ? all->n_very_low
									: all->n_low) /
		       (f64)all->n_clocks;
	return all->n_reasons ? (f64)all->n_held / (f64)all->n_reasons : 0;
}

/* The share of the readings with a reduced clock. */
static f64 held_down(const struct lull_why *why, f64 *clock_part)
{
	struct clock_readings all = { .highest_hz = lull_readings_highest_hz(why->lead) };

	lull_readings_walk(why->lead, add_reading, &all);
	*clock_part = all.n_clocks ? all.part_sum / (f64)all.n_clocks : 0;
	return held_share(&all);
}

static f64 busy(struct lull_why *why)
{
	if (held_down(why, &why->replay.clock_part) < LULL_T(throttled))
		return 0;
	return why->compute_share * why->step_ns;
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	f64 part = 0, share = held_down(why, &part);

	lull_show(f, "counter", NULL, "%.0f %% of the readings show a reduced clock", share * 100);
	if (part > 0)
		lull_show(f, "counter", NULL, "the clock is at %.0f %% of its highest", part * 100);
	lull_show_kernels(why, f);
}

const struct lull_cause lull_cause_throttled = {
	.id = "throttled",
	.title = "the device is busy at a reduced clock",
	.because = "power or temperature limits its clock",
	.why = "A device reduces its clock when it gets too hot or draws too much power. Counted "
	       "are readings in the steady steps with a clock below 0.9 of the device's highest "
	       "(0.7 if only the power limit reduces it), if the device is busy. The prediction "
	       "scales kernels with the clock, which is an upper bound: memory has a separate "
	       "clock.",
	.fix = "better cooling, a higher power limit, or record the clock with every measurement",
	.assumes = "kernel time is proportional to the clock",
	.kind = LULL_CAUSE_BUSY,
	.family = LULL_FAMILY_DEVICE,
	.slows_kernels = true,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_COUNTERS,
	.apply = apply,
	.busy = busy,
	.prove = prove,
};
