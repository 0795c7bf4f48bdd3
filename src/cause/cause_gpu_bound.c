/*
 * gpu-bound: the device is busy; look into its kernels.
 *
 * Signal:  compute, collectives and the device's own pauses are at least 90 % of the step.
 * Not it:  100 % "utilisation", which only says that some kernel was there at each reading.
 */
#include "cause/cause.h"
#include "cause/evidence.h"

static f64 busy(struct lull_why *why)
{
	return why->compute_share * why->step_ns;
}

const struct lull_cause lull_cause_gpu_bound = {
	.id = "gpu-bound",
	.title = "the device is busy",
	.because = "the time goes to its kernels",
	.why = "At least 90 % of the step is compute. The host is far enough ahead; only faster "
	       "kernels or less work make the step shorter. The largest kernels are listed.",
	.fix = "speed up the largest kernels: `lull kernel --from REPORT -- PROGRAM` says what "
	       "limits each; try lower precision or tensor cores, or give each launch more work",
	.fix_torch = "speed up the largest kernels: `lull kernel --from REPORT -- PROGRAM` says "
		     "what limits each; try lower precision, tensor cores, another batch size, "
		     "fused attention",
	.kind = LULL_CAUSE_BUSY,
	.is_default = true,
	.needs = LULL_NEED_WORK,
	.busy = busy,
	.prove = lull_show_kernels,
};
