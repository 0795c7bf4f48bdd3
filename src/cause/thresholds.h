/*
 * thresholds - the numbers by which `lull why` recognises causes, as variables that a
 *              test can change.
 *
 * thresholds.def lists them with their origins and tests. LULL_T(name) is the value of one,
 * LULL_TN(name) the same as an integer. test/unit/cause/test_thresholds.c doubles and halves each:
 * an answer of one of the tests named in its line has to change.
 *
 * Threads:        read-only, except in tests.
 */
#ifndef LULL_CAUSE_THRESHOLDS_H
#define LULL_CAUSE_THRESHOLDS_H

#include "model/limits.h"

enum lull_threshold_ix {
#define THRESHOLD(name, value, unit, origin, tests) LULL_THRESHOLD_##name,
#include "cause/thresholds.def"
#undef THRESHOLD
	LULL_N_THRESHOLDS,
};

/* All of thresholds.def, in its order. */
extern const struct lull_threshold lull_thresholds[LULL_N_THRESHOLDS];

/* The values in use; those of the list, unless a test changes them. */
extern f64 lull_threshold_values[LULL_N_THRESHOLDS];

#define LULL_T(name)  (lull_threshold_values[LULL_THRESHOLD_##name])
#define LULL_TN(name) ((u64)lull_threshold_values[LULL_THRESHOLD_##name])

#endif
