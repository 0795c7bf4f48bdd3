/*
 * spill: threads keep more than their registers hold, and pay for it with memory traffic.
 *
 * Signal:  a third or more of the loads and stores go to local memory, and memory is what the
 *          kernel waits for.
 * Not it:  local memory that is declared and hardly used; a kernel limited by a pipe.
 */
#include <math.h>

#include "counter/judge.h"

/* Below, leaving local memory out would bring less than LULL_MIN_GAIN by itself. */
#define LOCAL_SHARE 30
/* Of all instructions: a few spills around a call cost nothing. */
#define LOCAL_OF_ALL 0.02

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	static const enum lull_stall_ix waits[] = { LULL_STALLED_long_scoreboard,
						    LULL_STALLED_lg_throttle };
	f64 share, gain, inst, wait = lull_case_stalls(c, waits, LULL_COUNT_OF(waits));

	if (!lull_case_get(c, LULL_K_local_inst, &inst) || inst <= 0 ||
	    !lull_case_get(c, LULL_K_local_share, &share) || share < LOCAL_SHARE)
		return false;
	if (c->loads.memory < LULL_BUSY / 1.5 && wait < 0.3)
		return false;
	if (inst < LOCAL_OF_ALL * lull_k_of(c->p, LULL_K_inst_executed))
		return false;
	/* Where nothing is busy, the time goes with the accesses that are waited for. */
	gain = c->loads.memory >= LULL_BUSY
		       ? lull_loads_gain(&c->loads, LULL_LOAD_MEMORY, 1 - share / 100)
		       : 1 / (1 - share / 100 * fmin(1, wait));
	if (gain < LULL_MIN_GAIN || c->loads.sm > fmax(c->loads.memory, LULL_BUSY))
		return false;
	claim->gain = gain;
	lull_prove(claim, "%.0f %% of all loads and stores of warps go to local memory (%s)", share,
		   lull_k_format(inst, "count").text);
	lull_prove(claim, "%u registers and %u bytes of local memory for each thread",
		   c->p->launch.registers, c->p->launch.local_bytes);
	lull_advise(claim,
		    "fewer live values for each thread: less unrolling, smaller tiles, "
		    "__launch_bounds__ or -maxrregcount less tight; arrays of a thread indexed "
		    "by constants only");
	return true;
}

const struct lull_kverdict lull_verdict_spill = {
	.id = "spill",
	.title = "registers spill to local memory",
	.why = "What does not fit into the registers of a thread, and arrays that are indexed by "
	       "values known at run time only, live in local memory, which is global memory behind "
	       "the caches. Claimed when at least 30 % of the loads and stores go there and the "
	       "kernel waits for memory.",
	.stage = LULL_STAGE_WASTE,
	.claim = claim,
};
