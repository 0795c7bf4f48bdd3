/*
 * gate_int - what the files of a gate share.
 */
#ifndef LULL_COMPARE_GATE_INT_H
#define LULL_COMPARE_GATE_INT_H

#include "compare/gate.h"

/*
 * Whether the reports may be compared: all whole, of one program, of one kind of device. False with
 * the reason in gate->why; gate->note gets what is worth a look.
 */
bool lull_gate_may_compare(struct lull_gate *gate);

/* Add what a check measures on a side, run by run. */
int lull_gate_sample(const struct lull_gate *gate, const struct lull_gate_check *check,
		     const struct lull_vec *side, struct lull_samples *to, struct lull_err *err);

/*
 * Measure both sides of a check, or the new one of a bound, and fill its decision. Fails only for a
 * mistake of the caller's.
 */
int lull_gate_judge(const struct lull_gate *gate, struct lull_gate_check *check,
		    struct lull_err *err);

#endif
