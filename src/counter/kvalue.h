/*
 * kvalue - the numbers of one profiled launch: metrics as they were read, and what follows from
 * them.
 *
 * What it gives:  one enumeration over kmetrics.def and kvalues.def, and the value of each.
 * Absent:         NaN. A value is absent where something that it needs was not measured.
 * To add one:     a line in kvalues.def.
 */
#ifndef LULL_COUNTER_KVALUE_H
#define LULL_COUNTER_KVALUE_H

#include "base/types.h"

struct lull_profile;

enum lull_k {
#define KMETRIC(key, ...) LULL_K_##key,
#include "counter/kmetrics.def"
#undef KMETRIC
	LULL_N_KMETRICS,
	LULL_K_BEFORE_VALUES = LULL_N_KMETRICS - 1,
#define KVALUE(key, unit, meaning, formula) LULL_K_##key,
#include "counter/kvalues.def"
#undef KVALUE
	LULL_N_K,
};

/* What the lists say about one. */
struct lull_k_info {
	const char *key;
	const char *unit;
	const char *meaning;
	const char *formula; /* NULL for a metric */
};

/* By enum lull_k. */
extern const struct lull_k_info lull_k_infos[];

/* The metric of this key, or -1; values that are computed are not found. */
int lull_k_find(const char *key);

/* The value, NaN if it is absent. */
f64 lull_k_of(const struct lull_profile *p, enum lull_k k);

/* For people, with its unit: "87.6 %", "3.91 TB/s", "not measured". */
struct lull_k_text {
	char text[48];
};

/* Write a value of this unit, as kmetrics.def spells units. */
struct lull_k_text lull_k_format(f64 value, const char *unit);

/* Write the value of a launch. */
struct lull_k_text lull_k_text(const struct lull_profile *p, enum lull_k k);

#endif
