/*
 * cause_change - what two reports lost to each cause of idle time, and how sure the difference is.
 *
 * What it gives:  for each cause that either answer lists, its time per step on both sides and the
 *                 90 % interval of the difference.
 * Method:         that of the step time (compare/shift.h), on what each steady step lost. Values
 *                 are not clipped: a pause that only one step in fifty has is what the cause costs.
 * Left out:       what the device computes; it is no idle time.
 */
#ifndef LULL_COMPARE_CAUSE_CHANGE_H
#define LULL_COMPARE_CAUSE_CHANGE_H

#include "base/types.h"
#include "base/vec.h"
#include "cause/why.h"

struct lull_cause_change {
	enum lull_cause_ix cause;
	f64 cost_ns[2]; /* of each step, before and after */
	bool has_interval;
	f64 low_ns, high_ns; /* of the difference, after minus before */
};

/*
 * Add a struct lull_cause_change for each cause, in the order of causes.def. Either side may be
 * NULL: it has no answer, and then no difference has an interval.
 */
void lull_cause_changes(const struct lull_why *before, const struct lull_why *after,
			struct lull_vec *to);

#endif
