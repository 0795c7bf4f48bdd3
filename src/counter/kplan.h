/*
 * kplan - what measuring costs on a chip, asked of CUPTI's host library; no device is needed.
 *
 *	struct lull_kplan *plan;
 *	lull_kplan_open(&plan, "/usr/local/cuda/lib64/libcupti.so.13", "GH100", err);
 *	lull_kplan_passes(plan, &set, &cost, err);
 *	lull_kplan_close(plan);
 *
 * Needs:     CUPTI of CUDA 12.6 or later, with libnvperf_host.so beside it.
 * Cost:      opening 50 ms, a plan 0.1 s.
 */
#ifndef LULL_COUNTER_KPLAN_H
#define LULL_COUNTER_KPLAN_H

#include "counter/kset.h"

struct lull_kplan;

/* What a set takes on the chip. */
struct lull_kcost {
	u32 n_passes;
	u32 n_metrics;
	struct lull_vec missing; /* const char *: keys and names that the chip does not have */
};

/*
 * Load CUPTI and choose a chip by its name. LULL_E_NOT_FOUND if there is no such library,
 * LULL_E_UNSUPPORTED if it is too old, LULL_E_USAGE with the names of all chips if there is none
 * of this name.
 */
int lull_kplan_open(struct lull_kplan **to, const char *cupti_path, const char *chip,
		    struct lull_err *err);

/* Free it. NULL is fine. */
void lull_kplan_close(struct lull_kplan *plan);

/* The name by which the chip has the metric, or NULL. */
const char *lull_kplan_name(struct lull_kplan *plan, const struct lull_kmetric_desc *metric);

/* Plan a set. Release the list of what is missing with lull_vec_release(). */
int lull_kplan_passes(struct lull_kplan *plan, const struct lull_kset *set, struct lull_kcost *cost,
		      struct lull_err *err);

/* Told a metric of the chip, without suffix: name, unit, what it is. */
typedef void lull_kplan_metric_fn(void *ctx, const char *name, const char *unit, const char *text);

/* List all that CUPTI has for the chip; how many that are. */
u64 lull_kplan_list(struct lull_kplan *plan, lull_kplan_metric_fn *tell, void *ctx);

#endif
