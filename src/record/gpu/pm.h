/*
 * pm - counters of a device, sampled by the hardware at a fixed rate (CUPTI's PM sampling).
 *
 * What it gives:  values by metric (metrics.def) with the time of each sample.
 * Two halves:     a plan says which metrics fit into one pass and how to configure the hardware; it
 *                 needs CUPTI but no device. A sampler runs a plan on a device, and needs
 *                 permission to read counters (lull doctor).
 * Where:          in the sampler's process only: CUDA is initialised there.
 */
#ifndef LULL_RECORD_GPU_PM_H
#define LULL_RECORD_GPU_PM_H

#include "base/err.h"
#include "base/types.h"
#include "record/gpu/nvml.h"

#define PM_STRUCT(name, theirs, last, fields) \
	struct lull_pm_##name {               \
		size_t struct_bytes;          \
		void *priv;                   \
		fields                        \
	};
#include "record/gpu/pm.def"
#undef PM_STRUCT

#define LULL_PM_MAX_METRICS 32u

struct lull_pm_api;

/* What one pass measures on a kind of chip. */
struct lull_pm_plan {
	struct lull_pm_api *api;
	void *host; /* CUPTI's object */
	u8 *config;
	size_t config_bytes;
	u32 n;
	const char *names[LULL_PM_MAX_METRICS];
	enum lull_metric_kind metrics[LULL_PM_MAX_METRICS];
};

/*
 * Make a plan for a chip by its name ("GH100"), with the CUPTI at `cupti_path`. LULL_E_NOT_FOUND if
 * there is no such library, LULL_E_UNSUPPORTED if it is too old or knows nothing of the chip.
 */
int lull_pm_plan_chip(struct lull_pm_plan *plan, const char *cupti_path, const char *chip,
		      struct lull_err *err);

/* Free it. */
void lull_pm_plan_release(struct lull_pm_plan *plan);

/* Told one sample: its end in ns of CLOCK_MONOTONIC, and n values of plan->metrics. */
typedef void lull_pm_sample_fn(void *ctx, u64 time_ns, const struct lull_pm_plan *plan,
			       const f64 *values);

struct lull_pm;

/*
 * Begin to sample a device (CUDA's number). LULL_E_UNSUPPORTED with the reason if that is refused.
 */
int lull_pm_open(struct lull_pm **pm, const char *cupti_path, u32 device_ix, u64 interval_ns,
		 struct lull_err *err);

/*
 * Hand over what has come in since the last call; at least ten times a second. Returns how many
 * samples the hardware may have dropped: 1 for each overflow.
 */
u64 lull_pm_drain(struct lull_pm *pm, lull_pm_sample_fn *tell, void *ctx);

/* Stop and free. NULL is fine. */
void lull_pm_close(struct lull_pm *pm);

#endif
