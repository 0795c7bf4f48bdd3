/*
 * diff_profiled - the part of `lull diff` about kernels whose counters were read on both sides.
 */
#ifndef LULL_CMD_DIFF_PROFILED_H
#define LULL_CMD_DIFF_PROFILED_H

#include "text/json.h"
#include "counter/change.h"
#include "trace/reader.h"

struct lull_diff_profiled {
	struct lull_profiles side[2];
	struct lull_vec changes; /* struct lull_change */
};

/* Read both sides; nothing to tell unless both have counters. */
void lull_diff_profiled_init(struct lull_diff_profiled *d, struct lull_reader *before,
			     struct lull_reader *after);

/* Free it. */
void lull_diff_profiled_release(struct lull_diff_profiled *d);

/* For people: a table for each of the first `top` kernels (0 for all), and why. */
void lull_diff_profiled_print(const struct lull_diff_profiled *d, u64 top);

/* For scripts: the array "profiled". */
void lull_diff_profiled_json(const struct lull_diff_profiled *d, struct lull_json *j);

#endif
