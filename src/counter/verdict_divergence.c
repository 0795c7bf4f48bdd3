/*
 * divergence: instructions work for few threads of their warp.
 *
 * Signal:  on average less than 65 % of the lanes take part, and memory is not the limit.
 *          Warps that the size of the block leaves part empty are the same waste, with another fix.
 * Not it:  a memory-bound kernel whose lanes wait anyway.
 */
#include <math.h>

#include "counter/judge.h"

/* Checks of bounds and predicates leave 28 to 31 of 32 lanes; 65 % are 20.8. */
#define LANE_SHARE 65

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 share, lanes, possible = lull_k_of(c->p, LULL_K_lanes_possible);

	if (!lull_case_get(c, LULL_K_warp_share, &share) || !lull_case_get(c, LULL_K_lanes, &lanes))
		return false;
	if (share >= LANE_SHARE || share <= 0)
		return false;
	if (c->loads.memory >= LULL_BUSY && !lull_loads_is_compute(&c->loads))
		return false;
	claim->gain = c->loads.sm >= LULL_BUSY
			      ? lull_loads_gain(&c->loads, LULL_LOAD_PIPE, share / 100)
			      : 100 / share;
	if (claim->gain < LULL_MIN_GAIN)
		return false;
	lull_prove(claim, "an instruction works for %.1f of 32 threads of its warp", lanes);
	if (c->loads.sm > 0)
		lull_prove(claim, "the multiprocessors are %.0f %% busy with that",
			   100 * c->loads.sm);
	if (possible < 32 * LANE_SHARE / 100.0) {
		claim->title = "blocks leave most of their warps empty";
		lull_prove(claim, "a block of %.0f threads fills %.1f of 32 in each warp",
			   lull_k_of(c->p, LULL_K_block_threads), possible);
		lull_advise(claim, "blocks of whole warps: a multiple of 32 threads, 128 to 512");
		return true;
	}
	lull_advise(claim,
		    "let the threads of a warp take the same branch: sort or group the work by "
		    "case, one warp for each item instead of one thread, select instead of branch");
	return true;
}

const struct lull_kverdict lull_verdict_divergence = {
	.id = "divergence",
	.title = "instructions work for few threads of their warp",
	.why = "A warp executes one instruction for its 32 threads. When they take different "
	       "branches, it executes all of them, each for a part of the threads. Claimed when "
	       "less than 65 % of the threads take part on average and memory is not the limit.",
	.stage = LULL_STAGE_WASTE,
	.claim = claim,
};
