/*
 * remark - the findings of `lull why` as remarks beside lines of source, for editors and code
 * review.
 *
 * What it gives:  one remark for each cause that costs time, the first cause first, with its
 *                 sentence and its place. Of a cause without a file and line the place is a range
 *                 or a call.
 * Ownership:      borrows from the answer.
 */
#ifndef LULL_CAUSE_REMARK_H
#define LULL_CAUSE_REMARK_H

#include "base/str.h"
#include "base/vec.h"
#include "cause/why.h"

struct lull_remark {
	const struct lull_finding *finding;
	bool is_first; /* it is the answer */
	bool is_guess;
};

/* All remarks, into `remarks` (struct lull_remark), which the caller releases. */
void lull_remarks(const struct lull_why *why, struct lull_vec *remarks);

/* Append what it says: cost, cause, fix, and the step that the fix should give. */
void lull_remark_text(const struct lull_why *why, const struct lull_remark *remark,
		      struct lull_str *to);

#endif
