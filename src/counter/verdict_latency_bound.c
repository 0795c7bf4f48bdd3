/*
 * latency-bound: nothing is busy, warps wait for results.
 *
 * Signal:  no part of the chip is 60 % busy. The wait that takes most gives the detail.
 * Not it:  a chip without work (small-grid, tail, launch-overhead).
 */
#include <math.h>
#include <stdio.h>

#include "counter/judge.h"

/* Few warps: more of them would hide the latency, and the grid decides that. */
static void advise(const struct lull_case *c, struct lull_kclaim *claim, int stall)
{
	f64 had = lull_k_of(c->p, LULL_K_occupancy), fits = lull_k_of(c->p, LULL_K_occupancy_limit);
	const char *help = stall >= 0 ? lull_stalls[stall].help : "";

	if (had < 0.5 * fits)
		lull_advise(claim,
			    "%s; more warps hide the latency: the grid gives each multiprocessor "
			    "%.0f %% of the warps that fit",
			    *help ? help : "independent work for each thread", 100 * had / fits);
	else
		lull_advise(claim, "%s",
			    *help	 ? help
			    : stall >= 0 ? "more independent work for each thread"
					 : "measure what the warps wait for: --section warps");
}

/* Which part came closest: where two are half busy, they take turns. */
static void prove_idle(const struct lull_case *c, struct lull_kclaim *claim)
{
	const struct lull_loads *loads = &c->loads;
	int first = -1, second = -1;

	for (int i = 0; i < LULL_N_PARTS; i++) {
		if (lull_parts[i].kind == LULL_LOAD_WHOLE || isnan(loads->of[i]))
			continue;
		if (first < 0 || loads->of[i] > loads->of[first]) {
			second = first;
			first = i;
		} else if (second < 0 || loads->of[i] > loads->of[second]) {
			second = i;
		}
	}
	if (first < 0 || second < 0)
		lull_prove(claim, "no part of the chip is more than %.0f %% busy",
			   100 * loads->top);
	else
		lull_prove(claim, "no part of the chip is busy: %s %.0f %%, %s %.0f %%",
			   lull_parts[first].name, 100 * loads->of[first], lull_parts[second].name,
			   100 * loads->of[second]);
}

static void prove_wait(const struct lull_case *c, struct lull_kclaim *claim, int stall)
{
	if (stall < 0) {
		lull_prove(claim, "what the warps wait for most was not measured");
		return;
	}
	snprintf(claim->detail, sizeof(claim->detail), "%s", lull_stalls[stall].title);
	lull_prove(claim, "%.0f %% of the warps' time: %s",
		   100 * lull_stall_share(c->p, (enum lull_stall_ix)stall),
		   lull_k_infos[lull_stalls[stall].metric].meaning);
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	int stall = lull_stall_top(c->p);
	f64 eligible = lull_k_of(c->p, LULL_K_sched_eligible_warps);

	if (isnan(c->loads.sm) || isnan(c->loads.memory)) {
		c->missing = isnan(c->loads.sm) ? "sm_throughput" : "memory_throughput";
		return false;
	}
	if (c->loads.top >= LULL_BUSY)
		return false;
	claim->gain = 1 / fmax(c->loads.top, 0.01);
	prove_idle(c, claim);
	prove_wait(c, claim, stall);
	if (!isnan(eligible))
		lull_prove(claim,
			   "%.2f warps of a scheduler could issue, of %.1f that are resident",
			   eligible, lull_k_of(c->p, LULL_K_sched_active_warps));
	advise(c, claim, stall);
	return true;
}

const struct lull_kverdict lull_verdict_latency_bound = {
	.id = "latency-bound",
	.title = "nothing is busy, warps wait for results",
	.why = "No part of the chip is 60 % busy: time goes into waiting, and there is too little "
	       "independent work to fill it. The longest wait is named. The gain is up to the "
	       "busiest "
	       "part's peak.",
	.stage = LULL_STAGE_LATENCY,
	.claim = claim,
};
