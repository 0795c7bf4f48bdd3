#include "model/limits.h"

const struct lull_threshold lull_limits[LULL_N_LIMITS] = {
#define THRESHOLD(name, value, unit, origin, tests) { #name, value, unit, origin, tests },
#include "model/limits.def"
#undef THRESHOLD
};

f64 lull_limit_values[LULL_N_LIMITS] = {
#define THRESHOLD(name, value, unit, origin, tests) value,
#include "model/limits.def"
#undef THRESHOLD
};
