/*
 * limits - the numbers by which src/model decides, as variables that a test can change.
 *
 * limits.def lists them with their origins and tests. LULL_L(name) is the value of one,
 * LULL_LN(name) the same as an integer. cause/thresholds.h has those by which causes are told; one
 * test doubles and halves the numbers of both lists (test/unit/cause/test_thresholds.c).
 *
 * Threads:        read-only, except in tests.
 */
#ifndef LULL_MODEL_LIMITS_H
#define LULL_MODEL_LIMITS_H

#include "base/types.h"

enum lull_limit_ix {
#define THRESHOLD(name, value, unit, origin, tests) LULL_LIMIT_##name,
#include "model/limits.def"
#undef THRESHOLD
	LULL_N_LIMITS,
};

/* A line of either list. */
struct lull_threshold {
	const char *name;
	f64 value;
	const char *unit;
	const char *origin; /* measured where, or derived from what */
	const char *tests;  /* cases of test/golden that pin it, blanks between them */
};

/* All of limits.def, in its order. */
extern const struct lull_threshold lull_limits[LULL_N_LIMITS];

/* The values in use; those of the list, unless a test changes them. */
extern f64 lull_limit_values[LULL_N_LIMITS];

#define LULL_L(name)  (lull_limit_values[LULL_LIMIT_##name])
#define LULL_LN(name) ((u64)lull_limit_values[LULL_LIMIT_##name])

#endif
