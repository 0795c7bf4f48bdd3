/*
 * clock - convert the CPU's counter to CLOCK_MONOTONIC nanoseconds.
 *
 * Agents stamp events with the raw counter. The recorder takes a pair of (counter, clock) before
 * each drain. The time of an event is interpolated between the two pairs around it, so that the
 * result follows every correction of the system clock and never runs backwards.
 */
#ifndef LULL_RECORD_CLOCK_H
#define LULL_RECORD_CLOCK_H

#include "base/types.h"
#include "base/vec.h"
#include "wire/wire.h"

struct lull_clock {
	struct lull_vec pairs; /* struct lull_clock_pair, rising; thinned out when there are many */
	u64 tick_hz;
	bool is_clock; /* the counter is CLOCK_MONOTONIC itself */
};

/*
 * Start a clock: decides whether the counter is usable and how fast it ticks (takes up to 20 ms on
 * x86_64).
 */
void lull_clock_init(struct lull_clock *c);

/* Free the pairs. */
void lull_clock_release(struct lull_clock *c);

/* Take a pair now and also store it in the control page, where recovery finds it. */
void lull_clock_tick(struct lull_clock *c, struct lull_control *control);

/* Rebuild a clock from the pairs in the control page of a dead recorder. */
void lull_clock_load(struct lull_clock *c, const struct lull_control *control);

/* CLOCK_MONOTONIC nanoseconds of a counter value. */
u64 lull_clock_ns_of(const struct lull_clock *c, u64 counter);

/* Nanoseconds of a number of ticks. */
u64 lull_clock_dur_ns(const struct lull_clock *c, u64 ticks);

/* Ticks of a number of nanoseconds. */
u64 lull_clock_ticks(const struct lull_clock *c, u64 dur_ns);

#endif
