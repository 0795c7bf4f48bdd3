/*
 * changepoint - where the level of a row of noisy measurements changed.
 *
 * Method:         optimal partitioning, which is PELT (Killick, Fearnhead, Eckley 2012) without its
 *                 short cuts: of all ways to cut the row into levels, the one with the least
 *                 squared error plus a price for each level. The price is 3 ln n times the variance
 *                 of the noise, more in short rows, where the noise is not well known. So a change
 *                 has to be 4.1 standard errors in 200 values. The noise is that of neighbours:
 *                 the median of their absolute differences, which no change of level disturbs.
 * Robust:         values far from the median of the 7 around them are clipped, so that one bad run
 *                 is no change. A level has at least LULL_CHANGEPOINT_MIN_LEVEL values.
 * How good:       test_changepoint has the rates on simulated rows.
 * Cost:           O(n^2): 0.1 s for 5,000 values. Of longer rows the last 5,000 are looked at.
 */
#ifndef LULL_COMPARE_CHANGEPOINT_H
#define LULL_COMPARE_CHANGEPOINT_H

#include "base/types.h"
#include "base/vec.h"

/* A level of fewer values is noise. */
#define LULL_CHANGEPOINT_MIN_LEVEL 3

/* In fewer values nothing is looked for. */
#define LULL_CHANGEPOINT_MIN_VALUES 8

struct lull_changepoint {
	size_t ix;  /* the first value of the new level */
	f64 before; /* medians of the levels */
	f64 after;
	f64 change; /* of the mean, as a share of the old one; of shares, the difference */
	f64 low;    /* 90 % interval of the change */
	f64 high;
};

struct lull_changepoints {
	struct lull_vec all; /* struct lull_changepoint, by ix */
	f64 noise; /* standard deviation of a value, as a share of it; of shares: their unit */
};

/* Look for changes in n values; `is_share` compares differences, else ratios where it can. */
void lull_changepoints_find(struct lull_changepoints *found, const f64 *values, size_t n,
			    bool is_share);

/* Free them. */
void lull_changepoints_release(struct lull_changepoints *found);

#endif
