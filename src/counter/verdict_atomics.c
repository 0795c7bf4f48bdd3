/*
 * atomics: additions to the same addresses take turns.
 *
 * Signal:  a third or more of the accesses to global memory are atomics, and either the unit that
 *          executes them is busy in some slice of the L2 cache, or warps wait for memory while no
 *          part of it is busy. For shared memory: its atomics are most of its instructions.
 * Not it:  one atomic for each block at the end of a sum; a kernel that keeps DRAM busy.
 */
#include <math.h>

#include "counter/judge.h"

#define ATOMIC_SHARE 30
/* Of all instructions: loads of the TMA are no accesses of warps, a few atomics may be. */
#define ATOMIC_OF_ALL 0.01

static const enum lull_stall_ix waits[] = {
	LULL_STALLED_lg_throttle, LULL_STALLED_long_scoreboard,	 LULL_STALLED_membar,
	LULL_STALLED_drain,	  LULL_STALLED_short_scoreboard, LULL_STALLED_mio_throttle,
};

/* Atomics of several lanes on the same word of shared memory run one by one. */
static bool claim_shared(struct lull_case *c, struct lull_kclaim *claim, f64 wait)
{
	f64 atomics = lull_k_of(c->p, LULL_K_shared_atom_inst);
	f64 all = lull_k_of(c->p, LULL_K_shared_inst);

	if (!(atomics > 0 && atomics >= all * ATOMIC_SHARE / 100 && wait >= 0.3))
		return false;
	claim->gain = 1 / (1 - fmin(0.97, wait));
	lull_prove(claim, "%.0f %% of the accesses to shared memory are atomics",
		   100 * atomics / all);
	lull_prove(claim, "warps wait for memory %.0f %% of their time", 100 * wait);
	lull_advise(claim,
		    "add up in registers or over the warp first (__reduce_add_sync), several "
		    "copies of the table in shared memory, one for each warp");
	return true;
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 share, all, wait = lull_case_stalls(c, waits, LULL_COUNT_OF(waits));
	f64 unit = lull_k_of(c->p, LULL_K_l2_atomic_max), mean = lull_k_of(c->p, LULL_K_l2_atomic);

	if (c->loads.of[LULL_PART_dram] >= LULL_BUSY || c->loads.sm >= LULL_BUSY)
		return false;
	if (claim_shared(c, claim, wait))
		return true;
	if (!lull_case_get(c, LULL_K_memory_inst, &all) || all <= 0 ||
	    !lull_case_get(c, LULL_K_atomic_share, &share) || share < ATOMIC_SHARE)
		return false;
	if (share / 100 * all < ATOMIC_OF_ALL * lull_k_of(c->p, LULL_K_inst_executed))
		return false;
	if (!(unit >= 100 * LULL_BUSY / 2) && wait < 0.4)
		return false;
	claim->gain = fmin(100, 1 / fmax(0.01, fmax(c->loads.of[LULL_PART_dram], c->loads.sm)));
	lull_prove(claim, "%.0f %% of the accesses to global memory are atomics", share);
	if (!isnan(unit))
		lull_prove(claim,
			   "the atomic unit of the busiest slice of the L2 cache was busy in "
			   "%.0f %% of the time, the mean of all in %.1f %%",
			   unit, mean);
	if (wait > 0)
		lull_prove(claim, "warps wait for memory %.0f %% of their time", 100 * wait);
	lull_advise(claim,
		    "add up first, in registers, over the warp (__reduce_add_sync) and in "
		    "shared memory; then one atomic for each block, to addresses that differ");
	return true;
}

const struct lull_kverdict lull_verdict_atomics = {
	.id = "atomics",
	.title = "atomics on the same addresses take turns",
	.why = "Atomics are executed by the L2 cache, those on one address one after the other. "
	       "Claimed when at least 30 % of the accesses to global memory are atomics, neither "
	       "DRAM nor a pipe is busy, and the atomic unit of some slice is, or warps wait for "
	       "memory 40 % of their time.",
	.stage = LULL_STAGE_WASTE,
	.claim = claim,
};
