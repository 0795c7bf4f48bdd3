/*
 * curve - values over time: memory of devices and processes, CPU time, counters.
 *
 * A curve keeps up to 32768 points; more are merged in pairs, each with the smallest, the largest
 * and the last value, so that no peak is lost.
 */
#ifndef LULL_TIMELINE_CURVE_H
#define LULL_TIMELINE_CURVE_H

#include "timeline/title_rows.h"
#include "timeline/timeline.h"

/* Add the curves of the report and their rows. */
void lull_curves_build(struct lull_timeline *t, struct lull_tl_rows *rows);

/* Add a value to a curve. */
void lull_curve_add(struct lull_curve *curve, u64 at_ns, f64 value);

/* The largest value. */
f64 lull_curve_max(const struct lull_curve *curve);

/*
 * The value at the top of its scale: 100 % of a share, the limit of a power, all memory of a
 * device; the largest value if nothing says more.
 */
f64 lull_curve_top(const struct lull_timeline *t, const struct lull_curve *curve);

/* Free names and points. */
void lull_curve_release(struct lull_curve *curve);

#endif
