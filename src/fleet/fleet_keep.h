/*
 * fleet_keep - reports of a folder within a bound on space and age.
 *
 * The oldest go first, by the time of their last change. What is being written stays: `.part`
 * files, a report with one beside it, and those that `is_busy` names; they count for the space.
 * A `.part` file that nobody has locked or changed for an hour was left by a recorder that died, as
 * when the machine went down: it is old like a report, and `on_stale` may finish it.
 */
#ifndef LULL_FLEET_FLEET_KEEP_H
#define LULL_FLEET_FLEET_KEEP_H

#include "base/err.h"
#include "base/types.h"

/* Whether this file is in use. */
typedef bool lull_fleet_busy_fn(const void *ctx, const char *path);

/* Nobody writes this `.part` file any more, and it is within the bounds. */
typedef void lull_fleet_stale_fn(void *ctx, const char *path);

struct lull_fleet_bound {
	u64 max_bytes; /* 0: no bound */
	u64 max_age_ns;
	lull_fleet_busy_fn *is_busy;   /* NULL: none is */
	lull_fleet_stale_fn *on_stale; /* NULL: it stays */
	void *ctx;
};

struct lull_fleet_kept {
	u64 n_bytes;   /* that are left */
	u32 n_reports; /* likewise */
	u32 n_removed;
};

/* Remove what is too much; `now_ns` is CLOCK_REALTIME. What cannot be removed stays. */
int lull_fleet_keep(const char *folder, const struct lull_fleet_bound *bound, u64 now_ns,
		    struct lull_fleet_kept *kept, struct lull_err *err);

#endif
