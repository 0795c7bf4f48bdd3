/*
 * gpu-bound: the device is busy; look into its kernels.
 *
 * Signal:  compute, collectives and the device's own pauses are at least 90 % of the step.
 * Not it:  100 % "utilisation", which only says that some kernel was there at each reading.
 */
#include <stdio.h>
#include <string.h>

#include "cause/cause.h"
#include "cause/evidence.h"

static f64 busy(struct lull_why *why)
{
	return why->compute_share * why->step_ns;
}

static bool is_most(u64 part, u64 all)
{
	return part > all / 2;
}

/* Words that fit where most of the time is of one kind. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	const struct lull_why_kernel *kernels = why->kernels.at;
	u64 all = 0;

	for (size_t i = 0; i < why->kernels.n; i++)
		all += kernels[i].ns;
	if (!all)
		return;
	if (!strcmp(kernels[0].name, LULL_GRAPH_NAME) && is_most(kernels[0].ns, all))
		snprintf(advice->fix, sizeof(advice->fix),
			 "see which of its kernels take the time: `lull profile "
			 "--cuda-graph-trace=node` tells them apart; here a graph is one piece");
	else if (is_torch && is_most(why->lead->class_ns[LULL_KERNEL_OPTIMIZER], all))
		snprintf(advice->fix, sizeof(advice->fix),
			 "most of it updates parameters: sparse gradients where a step uses few "
			 "rows of a table, one update for several batches, or an optimizer with "
			 "less state");
	else if (is_most(kernels[0].ns, all) &&
		 lull_kernel_class_of(kernels[0].name) == LULL_KERNEL_OTHER)
		snprintf(advice->fix, sizeof(advice->fix),
			 "speed up that kernel: `lull kernel --from REPORT -- PROGRAM` says what "
			 "limits it, such as atomics, loads that wait for each other, or too "
			 "little work in parallel");
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
	.suit = suit,
	.prove = lull_show_kernels,
};
