/*
 * stall - stall reasons of the warps of a launch, as shares.
 *
 * The shares are of all warps that were on a scheduler, so they add up to 1 where all reasons were
 * measured. Where only some were, they are still right, and the rest is missing.
 */
#ifndef LULL_COUNTER_STALL_H
#define LULL_COUNTER_STALL_H

#include "base/types.h"
#include "counter/profile.h"

enum lull_stall_kind {
	LULL_STALL_WORK,
	LULL_STALL_SYNC,
	LULL_STALL_MEMORY,
	LULL_STALL_MATH,
	LULL_STALL_FETCH,
};

enum lull_stall_ix {
#define STALL(reason, kind, title, help) LULL_STALLED_##reason,
#include "counter/stalls.def"
#undef STALL
	LULL_N_STALLS,
};

struct lull_stall_info {
	const char *reason; /* as metrics and samples spell it */
	enum lull_stall_kind kind;
	const char *title;
	const char *help; /* "" if there is nothing to do about it */
	enum lull_k metric;
};

/* By enum lull_stall_ix. */
extern const struct lull_stall_info lull_stalls[];

/* Share of the warps, 0 to 1; NaN if it was not measured. */
f64 lull_stall_share(const struct lull_profile *p, enum lull_stall_ix stall);

/* The longest wait, without time in which warps worked; -1 if the measurements do not say. */
int lull_stall_top(const struct lull_profile *p);

/* The reason with this spelling, or -1. */
int lull_stall_find(const char *reason);

/* All reasons, largest share first, those that were not measured left out; returns how many. */
size_t lull_stalls_sorted(const struct lull_profile *p, enum lull_stall_ix to[LULL_N_STALLS]);

#endif
