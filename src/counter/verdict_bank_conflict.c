/*
 * bank-conflict: lanes of a warp want different words of the same bank of shared memory.
 *
 * Signal:  a third or more of the wavefronts of shared memory are caused by conflicts, and shared
 *          memory is busy or waited for.
 * Not it:  wide accesses (float4), which need several wavefronts by nature; shared memory that is
 *          used little.
 */
#include <math.h>

#include "counter/judge.h"

#define CONFLICT_SHARE 33

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	static const enum lull_stall_ix waits[] = { LULL_STALLED_short_scoreboard,
						    LULL_STALLED_mio_throttle };
	f64 share, load, wait = lull_case_stalls(c, waits, LULL_COUNT_OF(waits));
	f64 used = c->loads.of[LULL_PART_shared];

	if (!lull_case_get(c, LULL_K_shared_conflicts, &load) || load <= 0 ||
	    !lull_case_get(c, LULL_K_conflict_share, &share) || share < CONFLICT_SHARE)
		return false;
	if (!(used >= 0.3) && wait < 0.3)
		return false;
	/* Conflicts are wavefronts of shared memory; without them the others are left. */
	claim->gain = c->loads.memory >= LULL_BUSY
			      ? lull_loads_gain(&c->loads, LULL_LOAD_MEMORY, 1 - share / 100)
			      : 1 / (1 - share / 100 * fmin(1, fmax(wait, isnan(used) ? 0 : used)));
	if (claim->gain < LULL_MIN_GAIN)
		return false;
	lull_prove(claim,
		   "%.1f %% of the wavefronts of shared memory are conflicts: %.1f for each one "
		   "that is needed",
		   share, lull_k_of(c->p, LULL_K_conflict_ways));
	if (!isnan(used))
		lull_prove(claim, "shared memory was busy in %.0f %% of the cycles", 100 * used);
	if (wait > 0)
		lull_prove(claim, "warps wait for shared memory %.0f %% of their time", 100 * wait);
	lull_advise(claim, "lanes of a warp should touch different banks: pad the rows of the tile "
			   "([32][33]), swizzle the index, or let neighbours read neighbours");
	return true;
}

const struct lull_kverdict lull_verdict_bank_conflict = {
	.id = "bank-conflict",
	.title = "lanes of a warp collide in the banks of shared memory",
	.why = "Shared memory has 32 banks of 4 bytes. Lanes of a warp that access different words "
	       "of one bank are served one after the other, in several wavefronts. Claimed when a "
	       "third of all wavefronts are caused by conflicts and shared memory is busy in 30 % "
	       "of the cycles, or waited for as much.",
	.stage = LULL_STAGE_WASTE,
	.claim = claim,
};
