/*
 * uncoalesced: threads of a warp touch memory far apart, so that most of what moves is not used.
 *
 * Signal:  less than 75 % of the bytes of touched sectors are wanted, and a part of the memory
 *          system is busy, or its queue is, or most warps that fit are there and wait for it: then
 *          something is full that has no counter, rows of DRAM or pages.
 * Not it:  dependent loads that touch a sector each and leave memory idle (latency-bound); wide
 *          accesses (float4), which touch 16 sectors and use all; lanes that share a sector.
 */
#include <math.h>

#include "counter/judge.h"

#define PACKED_SHARE 75
/* Memory this busy is worth unburdening: the rule's 60 % is for parts that are already packed. */
#define MEMORY_LOAD 0.4
/* So much of their time is spent on memory by warps that are there in numbers. */
#define CROWD_LOAD 0.2
#define CROWD_WAIT 0.6
#define CROWD	   50
/* Without the bytes that were wanted: no access of 16 bytes a lane touches more. */
#define WIDEST 16
#define PACKED 4.5

/* Share of the moved bytes that was wanted, at the level that is the limit. */
static f64 wanted_share(const struct lull_case *c, f64 packing)
{
	f64 wanted = lull_k_of(c->p, LULL_K_wanted_bytes), moved = NAN;

	if (c->loads.memory_part == LULL_PART_dram)
		moved = lull_k_of(c->p, LULL_K_dram_bytes);
	else if (c->loads.memory_part == LULL_PART_l2)
		moved = lull_k_of(c->p, LULL_K_l2_asked_bytes);
	/* Caches may have made good what the access pattern did; then this level has no excess. */
	if (moved > 0 && wanted > 0)
		return fmin(1, wanted / moved);
	return packing / 100;
}

/* Percent of the touched bytes that is wanted; a guess from sectors where that was not measured. */
static f64 packing_of(struct lull_case *c)
{
	f64 packing = lull_k_of(c->p, LULL_K_packing);
	f64 loads = lull_k_of(c->p, LULL_K_ld_requests),
	    stores = lull_k_of(c->p, LULL_K_st_requests);
	f64 sectors = lull_k_of(c->p, LULL_K_ld_sectors) + lull_k_of(c->p, LULL_K_st_sectors);

	if (!isnan(packing))
		return packing;
	if (isnan(sectors) || loads + stores <= 0)
		return NAN;
	sectors /= loads + stores;
	/* 4 bytes a lane, packed, are 4 sectors; up to 16 may be packed accesses of 16 bytes. */
	if (sectors > PACKED && sectors <= WIDEST && c->loads.memory >= MEMORY_LOAD)
		c->missing = "ld_bytes_per_sector";
	return sectors > WIDEST ? 400 / sectors : 100;
}

/* Many warps wait for a memory that is not idle: more of them would not help, packing would. */
static bool is_crowded(const struct lull_case *c)
{
	static const enum lull_stall_ix waits[] = { LULL_STALLED_long_scoreboard,
						    LULL_STALLED_drain, LULL_STALLED_lg_throttle };

	return c->loads.memory >= CROWD_LOAD && lull_k_of(c->p, LULL_K_occupancy) >= CROWD &&
	       lull_case_stalls(c, waits, LULL_COUNT_OF(waits)) >= CROWD_WAIT;
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	static const enum lull_stall_ix waits[] = { LULL_STALLED_lg_throttle,
						    LULL_STALLED_tex_throttle };
	f64 packing = packing_of(c), wait = lull_case_stalls(c, waits, LULL_COUNT_OF(waits));
	f64 ld = lull_k_of(c->p, LULL_K_ld_requests), st = lull_k_of(c->p, LULL_K_st_requests);

	if (ld + st == 0)
		return false;
	if (isnan(packing)) {
		c->missing = "ld_sectors";
		return false;
	}
	if (packing >= PACKED_SHARE ||
	    (c->loads.memory < MEMORY_LOAD && wait < 0.3 && !is_crowded(c)))
		return false;
	claim->gain = lull_loads_gain(&c->loads, LULL_LOAD_MEMORY, wanted_share(c, packing));
	if (claim->gain < LULL_MIN_GAIN)
		return false;
	if (ld > 0)
		lull_prove(claim, "a load of a warp touches %.1f sectors of 32 bytes",
			   lull_k_of(c->p, LULL_K_ld_sectors) / ld);
	if (st > 0)
		lull_prove(claim, "a store of a warp touches %.1f sectors",
			   lull_k_of(c->p, LULL_K_st_sectors) / st);
	lull_prove(claim, "%.0f %% of the bytes they touch are used", packing);
	lull_advise(claim, "let neighbouring threads read neighbouring addresses: swap the index, "
			   "structure of arrays, transpose through shared memory");
	return true;
}

const struct lull_kverdict lull_verdict_uncoalesced = {
	.id = "uncoalesced",
	.title = "threads of a warp touch memory far apart",
	.why = "Memory moves in sectors of 32 bytes. When neighbouring threads do not read "
	       "neighbouring addresses, most of each sector is thrown away. Claimed when less than "
	       "75 % of the touched bytes are used and a part of the memory system is at least 40 "
	       "% "
	       "busy, or warps are there in numbers and wait for it; the gain counts the bytes at "
	       "the level that is the limit, so what caches "
	       "make "
	       "good is not counted.",
	.stage = LULL_STAGE_WASTE,
	.claim = claim,
};
