/*
 * small-grid: fewer blocks than multiprocessors, so that part of the chip never has work.
 *
 * Signal:  fewer blocks than multiprocessors, and a quarter or more of the chip without work. The
 *          launch alone proves it; counters only refine it.
 * Not it:  as many blocks as multiprocessors, however small they are: that is latency or occupancy.
 */
#include <math.h>

#include "counter/judge.h"

/* Up to here the gain would be a third at most, and the kernel has other limits. */
#define USED_SHARE 75

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 blocks, sms, used, measured = lull_k_of(c->p, LULL_K_active_share);

	if (lull_profile_is_range(c->p))
		return false;
	if (!lull_case_get(c, LULL_K_blocks, &blocks) || !lull_case_get(c, LULL_K_sms, &sms))
		return false;
	used = isnan(measured) ? 100 * blocks / sms : measured;
	if (blocks >= sms || used >= USED_SHARE || c->loads.memory >= LULL_BUSY)
		return false;
	claim->gain = used > 0 ? 100 / used : NAN;
	lull_prove(claim, "%.0f block%s for %.0f multiprocessors: %.0f of them never have work",
		   blocks, blocks == 1 ? "" : "s", sms, sms - blocks);
	if (!isnan(measured))
		lull_prove(claim, "multiprocessors had work in %.1f %% of the time", measured);
	lull_advise(claim,
		    "launch at least %.0f blocks: smaller tiles, more outputs in parallel, the sum "
		    "split over blocks (split-K); or run other kernels beside it on another stream",
		    sms);
	return true;
}

const struct lull_kverdict lull_verdict_small_grid = {
	.id = "small-grid",
	.title = "fewer blocks than multiprocessors",
	.why = "A block runs on one multiprocessor. With fewer blocks than multiprocessors the "
	       "others never have work, and nothing inside the kernel can change that. Claimed "
	       "when "
	       "at least a quarter of the chip is left out and memory is not busy.",
	.stage = LULL_STAGE_SHAPE,
	.claim = claim,
};
