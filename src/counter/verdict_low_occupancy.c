/*
 * low-occupancy: too few warps fit on a multiprocessor to hide what they wait for.
 *
 * Signal:  at most three eighths of the warps fit, as many as fit are there, and nothing is busy.
 * Not it:  a kernel at a quarter of the warps that keeps a pipe or memory busy: occupancy is a
 *          means, never the goal. Warps that would fit but were not launched (latency-bound).
 */
#include <math.h>
#include <stdio.h>

#include "counter/judge.h"

#define FIT_SHARE 37.5
/* Warps come and go; from here on the resource is what limits. */
#define THERE_OF_FIT 0.6
/* Few warps that keep a part this busy are meant to be few: large tiles, tensor cores. */
#define HALF_BUSY 0.4

static const char *const fixes[LULL_N_OCCUPANCY_LIMITS] = {
	[LULL_LIMIT_WARPS] = "blocks whose size divides the warps of a multiprocessor",
	[LULL_LIMIT_BLOCKS] = "larger blocks: their number on a multiprocessor is limited, too",
	[LULL_LIMIT_REGISTERS] =
		"fewer registers: __launch_bounds__, less unrolling, smaller tiles",
	[LULL_LIMIT_SHARED] = ("less shared memory for each block: smaller tiles, fewer stages, "
			       "narrower types; or more threads that share it"),
};

static void prove_block(const struct lull_profile *p, struct lull_kclaim *claim)
{
	const struct lull_launch_row *l = &p->launch;
	struct lull_k_text shared =
		lull_k_format((f64)l->static_shared_bytes + l->dynamic_shared_bytes, "B");
	u32 n_threads = (u32)lull_k_whole(lull_k_of(p, LULL_K_block_threads));

	if (l->registers)
		lull_prove(claim, "a block has %u threads of %u registers and %s of shared memory",
			   n_threads, l->registers, shared.text);
	else
		lull_prove(claim, "a block has %u threads and %s of shared memory", n_threads,
			   shared.text);
}

/* Warps that the size of the block leaves part empty hide that much less. */
static f64 filled(const struct lull_profile *p)
{
	f64 lanes = lull_k_of(p, LULL_K_lanes_possible);

	return isnan(lanes) ? 1 : lanes / 32;
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	const struct lull_occupancy *o = &c->p->occupancy;
	f64 fits, had;

	if (lull_profile_is_range(c->p))
		return false;
	if (!lull_case_get(c, LULL_K_occupancy_limit, &fits) || fits * filled(c->p) > FIT_SHARE)
		return false;
	if (!lull_case_get(c, LULL_K_occupancy, &had) || had < THERE_OF_FIT * fits)
		return false;
	if (isnan(c->loads.top)) {
		c->missing = "sm_throughput";
		return false;
	}
	if (c->loads.top >= HALF_BUSY)
		return false;
	claim->gain = fmin(100 / fits, 1 / fmax(c->loads.top, 0.01));
	snprintf(claim->detail, sizeof(claim->detail), "%s", lull_occupancy_limit_name(o->by));
	lull_prove(claim, "%u of %.0f warps fit on a multiprocessor, limited by %s", o->n_warps,
		   100 * o->n_warps / fits, lull_occupancy_limit_name(o->by));
	prove_block(c->p, claim);
	lull_prove(claim, "no part of the chip is more than %.0f %% busy", 100 * c->loads.top);
	lull_advise(claim, "%s; or more independent work for each thread", fixes[o->by]);
	return true;
}

const struct lull_kverdict lull_verdict_low_occupancy = {
	.id = "low-occupancy",
	.title = "too few warps fit to hide latency",
	.why = "While a warp waits, others can work, if there are enough of them. Registers, "
	       "shared memory and the size of the block limit how many fit. Claimed when at most "
	       "37.5 % fit, those are resident, and no part of the chip is busy; the limiting "
	       "resource is named.",
	.stage = LULL_STAGE_LATENCY,
	.claim = claim,
};
