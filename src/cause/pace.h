/*
 * pace - whether the sleeps of a loop keep a rate, as a frame loop's do, or only pass time.
 *
 * A sleep that keeps a rate makes up for what the rest of the step takes: the moments until which
 * the thread wants to sleep are evenly spaced, more so than the sleeps are of equal length. One
 * that passes time is as long as ever, and the moments vary with the rest of the step.
 *
 * Cost:           O(n log n) in the sleeps, after a pass over the calls of the C library.
 */
#ifndef LULL_CAUSE_PACE_H
#define LULL_CAUSE_PACE_H

#include "cause/subject.h"

/* The period in ns that sleeps of a cause keep, one in most steps; 0 if they keep none. */
f64 lull_pace_ns(const struct lull_subject *s, u8 cause);

#endif
