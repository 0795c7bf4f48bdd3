/*
 * kernel_usual - how long kernels take when no counters are read: in a report of `lull profile`.
 *
 * Reading counters changes clocks and caches, and each kernel runs alone; the time that matters is
 * that of a run without them.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_USUAL_H
#define LULL_CMD_KERNEL_KERNEL_USUAL_H

#include "base/err.h"
#include "base/vec.h"
#include "counter/profile.h"

/* Launches of one kernel in one shape. */
struct lull_kernel_usual {
	char *name;
	u32 shape[6]; /* grid and block */
	u64 n;
	u64 total_ns;
};

/* Read the kernels of a report into `to` (struct lull_kernel_usual). */
int lull_kernel_usual_read(const char *path, struct lull_vec *to, struct lull_err *err);

/*
 * Add up all that have the name and shape of a launch into *sum, which has no name; false if there
 * are none.
 */
bool lull_kernel_usual_of(const struct lull_vec *all, const struct lull_profile *p,
			  struct lull_kernel_usual *sum);

/* Free them. */
void lull_kernel_usual_release(struct lull_vec *all);

#endif
