/*
 * tail: for a good part of the time only some multiprocessors have work.
 *
 * Signal:  enough blocks for all, yet multiprocessors had work for less than four fifths of the
 *          time that the busiest had; or few waves, the last of them hardly filled, and fewer warps
 *          than fit.
 * Not it:  fewer blocks than multiprocessors (small-grid); a short kernel (launch-overhead).
 */
#include <math.h>

#include "counter/judge.h"

/* With more waves than this the last one costs less than a fifth. */
#define MANY_WAVES 5
#define EVEN_SHARE 80

/* Uneven multiprocessors: some have nothing left to do. */
static bool is_uneven(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 active = lull_k_of(c->p, LULL_K_active_share);

	if (isnan(active) || active >= EVEN_SHARE)
		return false;
	claim->gain = 100 / active;
	lull_prove(claim, "multiprocessors had work in %.1f %% of the time of the busiest one",
		   active);
	return true;
}

/* A last wave with few blocks: all multiprocessors have work, but few warps. */
static bool is_partial(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 full = lull_k_of(c->p, LULL_K_wave_share);
	f64 fits = lull_k_of(c->p, LULL_K_occupancy_limit);
	f64 had = lull_k_of(c->p, LULL_K_occupancy);
	f64 waves = lull_k_of(c->p, LULL_K_waves);

	if (!(waves > 1 && waves < MANY_WAVES && full < EVEN_SHARE &&
	      had < fits * full / 100 * 1.1))
		return false;
	claim->gain = fmax(claim->gain, 100 / full);
	lull_prove(claim, "on average %.0f %% of the warps that fit were resident",
		   100 * had / fits);
	return true;
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 waves = lull_k_of(c->p, LULL_K_waves);
	f64 blocks, sms;
	bool is_tail;

	if (lull_profile_is_range(c->p))
		return false;
	if (!lull_case_get(c, LULL_K_blocks, &blocks) || !lull_case_get(c, LULL_K_sms, &sms) ||
	    blocks < sms || c->loads.memory >= LULL_BUSY)
		return false;
	if (isnan(lull_k_of(c->p, LULL_K_active_share)))
		c->missing = "sm_active_cycles";
	/* Both may hold; the larger gain is what whole waves of equal work would bring. */
	is_tail = is_uneven(c, claim);
	is_tail |= is_partial(c, claim);
	if (!is_tail)
		return false;
	if (!isnan(waves))
		lull_prove(claim, "%.0f blocks are %.2f waves of %.0f", blocks, waves,
			   blocks / waves);
	lull_advise(claim,
		    "blocks of equal work, long ones first; a grid that fills whole waves, or "
		    "smaller blocks; a persistent kernel that takes work from a queue");
	return true;
}

const struct lull_kverdict lull_verdict_tail = {
	.id = "tail",
	.title = "the end is uneven: some multiprocessors wait for the last blocks",
	.why = "Blocks run in waves. When the last wave has few blocks, or some blocks take much "
	       "longer than others, most of the chip waits for the rest. Claimed when "
	       "multiprocessors had work for less than 80 % of the time of the busiest one, or "
	       "when up to five waves are filled to less than 80 % and the warps show it.",
	.stage = LULL_STAGE_SHAPE,
	.claim = claim,
};
