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
#include "cause/replay.h"
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
};

static void add_reading(struct clock_readings *all, const char *name, f64 value, f64 highest)
{
	if (strcasestr(name, "throttle")) {
		all->n_reasons++;
		all->n_held += value > 0;
		all->n_power += value > 0 && strcasestr(name, "power");
	} else if (strcasestr(name, "clock") &&
		   (strcasestr(name, "sm") || strcasestr(name, "graphics"))) {
		f64 part = highest > 0 ? value / highest : 1;

		all->n_clocks += highest > 0;
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

/* The same device may have a row for each process that uses it, and one for its readings. */
static bool is_same_device(const struct lull_device_row *a, const struct lull_device_row *b)
{
	return a == b || (a->uuid && a->uuid == b->uuid);
}

static f64 highest_clock_hz(const struct lull_device_row *devices, size_t n, u32 device)
{
	f64 highest_hz = 0;

	for (size_t i = 0; device && device <= n && i < n; i++)
		if (is_same_device(&devices[i], &devices[device - 1]) &&
		    (f64)devices[i].clock_hz > highest_hz)
			highest_hz = (f64)devices[i].clock_hz;
	return highest_hz;
}

/* Readings of the device in the steady steps: throttle reasons, and the clock of the processors. */
static f64 held_down(const struct lull_why *why, f64 *clock_part)
{
	const struct lull_subject *s = why->lead;
	size_t n, n_metrics, n_devices;
	const struct lull_metric_row *metrics =
		lull_reader_dim(s->reader, LULL_TABLE_metric, &n_metrics);
	const struct lull_device_row *devices =
		lull_reader_dim(s->reader, LULL_TABLE_device, &n_devices);
	u64 from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
	u64 to_ns = lull_round_end_ns(&s->rounds, (u32)s->rounds.all.n - 1);
	f64 highest_hz = highest_clock_hz(devices, n_devices, s->device);
	struct clock_readings all = { 0 };
	struct lull_counter_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, s->reader, LULL_TABLE_counter, from_ns, to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			const struct lull_metric_row *metric = &metrics[cols.metric[i] - 1];
			const char *unit;

			if (!cols.metric[i] || cols.start_ns[i] < from_ns ||
			    cols.start_ns[i] >= to_ns ||
			    (cols.device[i] && cols.device[i] <= n_devices &&
			     s->device <= n_devices &&
			     !is_same_device(&devices[cols.device[i] - 1],
					     &devices[s->device - 1])))
				continue;
			unit = lull_reader_string(s->reader, metric->unit, NULL);
			add_reading(&all, lull_reader_string(s->reader, metric->name, NULL),
				    cols.value[i],
				    highest_hz / (strcasestr(unit, "mhz") ? 1e6 : 1));
		}
	}
	lull_cursor_release(&c);
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
