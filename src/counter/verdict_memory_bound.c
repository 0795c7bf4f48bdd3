/*
 * memory-bound: a level of the memory system is as busy as it gets.
 *
 * Signal:  a level is at least 60 % busy, and more than the multiprocessors.
 * Not it:  loads that are waited for while memory is idle (latency-bound).
 */
#include <math.h>
#include <stdio.h>

#include "counter/judge.h"

/* How fast it moved; DRAM's is what people compare with data sheets. */
static void prove_rate(const struct lull_profile *p, int part, struct lull_kclaim *claim)
{
	f64 rate = NAN, peak = NAN;

	if (part == LULL_PART_dram) {
		rate = lull_k_of(p, LULL_K_dram_rate);
		peak = lull_k_of(p, LULL_K_dram_peak);
		if (isnan(peak) && p->device.bandwidth_bytes)
			peak = (f64)p->device.bandwidth_bytes;
	} else if (part == LULL_PART_l2) {
		rate = lull_k_of(p, LULL_K_l2_rate);
	} else if (part == LULL_PART_host) {
		rate = lull_k_of(p, LULL_K_host_rate);
	}
	if (isnan(rate))
		return;
	if (isnan(peak))
		lull_prove(claim, "%s", lull_k_format(rate, "B/s").text);
	else
		lull_prove(claim, "%s of %s", lull_k_format(rate, "B/s").text,
			   lull_k_format(peak, "B/s").text);
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	int part = c->loads.memory_part;

	if (isnan(c->loads.memory)) {
		c->missing = "memory_throughput";
		return false;
	}
	if (c->loads.memory < LULL_BUSY || lull_loads_is_compute(&c->loads))
		return false;
	/* The parts may not explain the sum: queues and crossbars have no load of their own. */
	if (part < 0 || c->loads.of[part] < 0.8 * c->loads.memory)
		part = LULL_PART_memory;
	snprintf(claim->detail, sizeof(claim->detail), "%s", lull_parts[part].name);
	claim->gain = 1 / c->loads.memory;
	lull_prove(claim, "%s %.0f %% busy, multiprocessors %.0f %%", lull_parts[part].name,
		   100 * c->loads.memory, isnan(c->loads.sm) ? 0 : 100 * c->loads.sm);
	prove_rate(c->p, part, claim);
	lull_advise(claim, "%s; as it is, %.0f %% of what the %s can give are left",
		    lull_parts[part].help, 100 * (1 - c->loads.memory), lull_parts[part].name);
	return true;
}

const struct lull_kverdict lull_verdict_memory_bound = {
	.id = "memory-bound",
	.title = "memory is the limit",
	.why = "A level of the memory system (DRAM, L2 cache, L1 cache and shared memory, or the "
	       "host's memory) is at least 60 % busy, and more than the multiprocessors. Less "
	       "arithmetic does not help; fewer bytes do. The gain is up to the level's peak with "
	       "the same bytes.",
	.stage = LULL_STAGE_LIMIT,
	.claim = claim,
};
