/*
 * kernel_metrics - the metrics that --metrics names: whether there are such, and their values.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_METRICS_H
#define LULL_CMD_KERNEL_KERNEL_METRICS_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "counter/profile.h"

/* One metric that was asked for. */
struct lull_kernel_metric {
	const char *name;    /* as the user wrote it; the key where that was a pattern */
	const char *unit;    /* "" if not known */
	const char *meaning; /* NULL if not known */
	f64 value;	     /* NaN if it was not measured */
};

/*
 * Refuse a name (char *) that is no metric, with names that are nearly the same. Names of CUPTI's
 * are looked up in its lists of the usual chips; without CUPTI they are taken as they are.
 */
int lull_kernel_metrics_check(const struct lull_vec *names, struct lull_err *err);

/*
 * The same for what a report is to show: it may also be computed, or one that `all` (struct
 * lull_profile) have.
 */
int lull_kernel_metrics_check_shown(const struct lull_vec *names, const struct lull_vec *all,
				    struct lull_err *err);

/* The asked metrics (struct lull_kernel_metric) of a launch, in the order of the names. */
void lull_kernel_metrics_of(const struct lull_profile *p, const struct lull_vec *names,
			    struct lull_vec *to);

#endif
