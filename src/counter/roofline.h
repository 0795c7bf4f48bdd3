/*
 * roofline - where a launch lies between what the chip can compute and what it can move.
 *
 * A launch has one rate of operations and, for each level of memory, one intensity (operations for
 * each byte): one point under each slope. The roof over a point is the lower of its slope and the
 * ceiling of the type that most operations have.
 *
 * Peaks are those of the clocks that were measured, not of the data sheet.
 */
#ifndef LULL_COUNTER_ROOFLINE_H
#define LULL_COUNTER_ROOFLINE_H

#include "counter/profile.h"

enum lull_ceiling {
#define CEILING(id, name, ops, peak) LULL_CEILING_##id,
#include "counter/roofs.def"
#undef CEILING
	LULL_N_CEILINGS,
};

enum lull_slope {
#define SLOPE(id, name, bytes, peak) LULL_SLOPE_##id,
#include "counter/roofs.def"
#undef SLOPE
	LULL_N_SLOPES,
};

extern const char *const lull_ceiling_names[];
extern const char *const lull_slope_names[];

struct lull_roofline {
	f64 rate;		      /* operations a second; NaN if not measured */
	f64 ops[LULL_N_CEILINGS];     /* operations of each type, 0 if none */
	f64 ceiling[LULL_N_CEILINGS]; /* peak a second, NaN if not known */
	int type;		      /* enum lull_ceiling most operations have, -1 if none */
	f64 bytes[LULL_N_SLOPES];
	f64 slope[LULL_N_SLOPES];     /* peak bytes a second, NaN if not known */
	f64 intensity[LULL_N_SLOPES]; /* NaN if there is no point */
	f64 roof[LULL_N_SLOPES];      /* operations a second that could be had there */
	int bound;		      /* the slope with the lowest roof, -1 if none */
};

/* Work it out. */
void lull_roofline_of(struct lull_roofline *to, const struct lull_profile *p);

/* Whether the chart shows this ceiling: the kernel has such operations, or it is fp32's. */
bool lull_roofline_shows(const struct lull_roofline *r, int ceiling);

#endif
