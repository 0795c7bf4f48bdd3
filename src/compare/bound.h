/*
 * bound - a limit that a metric has to keep, as people write it: "step < 40 ms".
 *
 * What it takes:  METRIC < NUMBER UNIT, also <=; blanks are optional. The last < counts, since the
 *                 names of kernels have some: "kernel:scan<int> < 2 ms". Units are those of the
 *                 metric: ns, us, ms, s; B, KB, KiB, ... GiB; %; J, mJ; none for counts.
 * What it says:   a sentence with the place, for anything else.
 */
#ifndef LULL_COMPARE_BOUND_H
#define LULL_COMPARE_BOUND_H

#include "base/err.h"
#include "base/types.h"
#include "compare/metric.h"

/* The parts of a bound, before its metric is known. */
struct lull_bound_text {
	const char *text; /* all of it, borrowed */
	size_t spec_len;  /* the metric is its first bytes, without blanks around it */
	size_t spec_off;
	size_t limit_off; /* where the number begins */
	bool is_inclusive;
};

/* Find the parts; LULL_E_USAGE with a sentence if there is no <, or nothing on a side of it. */
int lull_bound_split(const char *text, struct lull_bound_text *parts, struct lull_err *err);

/* The number in the unit of the metric: ns, bytes, a share (0.2 for 20 %), or as it stands. */
int lull_bound_limit(const struct lull_bound_text *parts, const struct lull_metric *metric,
		     f64 *limit, struct lull_err *err);

#endif
