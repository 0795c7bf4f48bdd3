/*
 * straggler: the collectives of all ranks but one are long, since they wait for that one.
 *
 * Signal:  the same rank has the shortest collectives in most steps; what the others take longer is
 *          waiting. The engine takes that part of each exposed collective apart.
 * Not it:  ranks that take turns in being late; a collective that is long on all ranks.
 */
#include "cause/cause.h"
#include "cause/evidence.h"

static bool claim(const struct lull_claim *c)
{
	return c->is_late;
}

const struct lull_cause lull_cause_straggler = {
	.id = "straggler",
	.title = "collectives wait for one rank that is late",
	.because = "it waits in collectives for a rank that is late",
	.why = "A collective ends on all ranks at about the same time, so the rank that arrives "
	       "last has the shortest one. If the same rank is last in most steps, the others "
	       "wait for it: the extra time of their collectives compared with its own is "
	       "counted here. The first cause of that rank is what to fix. This needs all ranks "
	       "in the recording, or their reports in one folder; lull-ranks(7) says how late a "
	       "rank has to be there.",
	.fix = "look at the rank that is late: its first cause, its share of the data, its host",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_RANKS,
	.ranks = LULL_RANKS_LATE,
	.names_unit = true,
	.needs = LULL_NEED_WORK | LULL_NEED_COLLECTIVE | LULL_NEED_RANKS,
	.claims_at = LULL_AT(COLLECTIVE),
	.claim = claim,
	.prove = lull_show_ranks,
};
