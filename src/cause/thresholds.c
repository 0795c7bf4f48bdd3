#include "cause/thresholds.h"

const struct lull_threshold lull_thresholds[LULL_N_THRESHOLDS] = {
#define THRESHOLD(name, value, unit, origin, tests) { #name, value, unit, origin, tests },
#include "cause/thresholds.def"
#undef THRESHOLD
};

f64 lull_threshold_values[LULL_N_THRESHOLDS] = {
#define THRESHOLD(name, value, unit, origin, tests) value,
#include "cause/thresholds.def"
#undef THRESHOLD
};
