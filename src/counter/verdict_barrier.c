/*
 * barrier: warps wait for the others of their block.
 *
 * Signal:  30 % or more of the warps' time is spent at barriers, more than for anything else, while
 *          no part of the chip is busy.
 * Not it:  a kernel with barriers that keeps a pipe or memory busy all the same.
 */
#include <math.h>

#include "counter/judge.h"

#define BARRIER_SHARE 0.3

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 share = lull_stall_share(c->p, LULL_STALLED_barrier);

	if (isnan(share)) {
		c->missing = "stall_barrier";
		return false;
	}
	if (share < BARRIER_SHARE || c->loads.top >= LULL_BUSY ||
	    lull_stall_top(c->p) != LULL_STALLED_barrier)
		return false;
	claim->gain = fmin(1 / (1 - fmin(share, 0.97)), 1 / fmax(c->loads.top, 0.01));
	lull_prove(claim, "warps stand at a barrier %.0f %% of their time", 100 * share);
	if (!isnan(c->loads.top))
		lull_prove(claim, "no part of the chip is more than %.0f %% busy",
			   100 * c->loads.top);
	lull_advise(claim,
		    "%s; __syncwarp() where a warp is enough; several small blocks on a "
		    "multiprocessor, so that others work while one waits",
		    lull_stalls[LULL_STALLED_barrier].help);
	return true;
}

const struct lull_kverdict lull_verdict_barrier = {
	.id = "barrier",
	.title = "warps wait for each other at barriers",
	.why = "Warps that reach __syncthreads() first wait for the last one of their block. "
	       "Claimed "
	       "when that is 30 % of the warps' time, more than any other wait, and no part of the "
	       "chip is busy.",
	.stage = LULL_STAGE_LATENCY,
	.claim = claim,
};
