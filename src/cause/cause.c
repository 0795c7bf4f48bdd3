#include "cause/cause.h"

#include <string.h>

#include "cause/thresholds.h"
#include "model/words.h"
#include "text/nearest.h"

#define CAUSE(name) extern const struct lull_cause lull_cause_##name;
#include "cause/causes.def"
#undef CAUSE

const struct lull_cause *const lull_causes[LULL_N_CAUSES] = {
#define CAUSE(name) &lull_cause_##name,
#include "cause/causes.def"
#undef CAUSE
};

_Static_assert(LULL_N_CAUSES <= LULL_SUBJECT_CAUSES, "raise LULL_SUBJECT_CAUSES");
_Static_assert(LULL_PLACE_UNLINKED < LULL_SUBJECT_PLACES, "raise LULL_SUBJECT_PLACES");

int lull_cause_find(const char *id, const char **nearest)
{
	struct lull_nearest near = { .word = id };

	for (int i = 0; i < LULL_N_CAUSES; i++) {
		if (!strcmp(lull_causes[i]->id, id))
			return i;
		lull_nearest_add(&near, lull_causes[i]->id);
	}
	*nearest = near.best;
	return -1;
}

enum lull_cause_ix lull_cause_default(enum lull_cause_kind kind)
{
	int i = 0;

	while (i < LULL_N_CAUSES - 1 &&
	       !(lull_causes[i]->is_default && lull_causes[i]->kind == kind))
		i++;
	return (enum lull_cause_ix)i;
}

enum lull_cause_ix lull_cause_among_ranks(enum lull_among_ranks ranks)
{
	int i = 0;

	while (i < LULL_N_CAUSES - 1 && lull_causes[i]->ranks != ranks)
		i++;
	return (enum lull_cause_ix)i;
}

void lull_causes_by_place(u8 by_place[LULL_SUBJECT_PLACES][LULL_SUBJECT_CAUSES + 1])
{
	for (u32 place = 0; place < LULL_SUBJECT_PLACES; place++) {
		u8 *next = by_place[place];

		for (int i = 0; i < LULL_N_CAUSES; i++) {
			u32 at = lull_causes[i]->claims_at;

			if (lull_causes[i]->claim && (!at || (at & 1u << place)))
				*next++ = (u8)i;
		}
		*next = LULL_N_CAUSES;
	}
}

enum lull_cause_ix lull_cause_of(const struct lull_claim *c)
{
	for (const u8 *i = c->subject->by_place[c->place]; *i != LULL_N_CAUSES; i++) {
		if (lull_causes[*i]->claim(c))
			return (enum lull_cause_ix) * i;
	}
	return lull_cause_default(LULL_CAUSE_BLIND);
}

bool lull_claim_is_other(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_GAP && c->gap_ns >= LULL_TN(gap_long_ns) && !c->stall &&
	       (c->pause == LULL_NO_PAUSE || c->pause == LULL_HOST_BLOCKED) &&
	       !(c->inside & (LULL_IN_LOADER | LULL_IN_STORAGE | LULL_IN_WRITE));
}

const struct lull_copy *lull_claim_copy(const struct lull_claim *c)
{
	const struct lull_units *units = &c->subject->units;

	return lull_units_copy(units, &units->at[c->unit]);
}

bool lull_call_copies_out(const struct lull_subject *s, u32 node)
{
	if (node == LULL_NONE || !s->is_parking ||
	    !(s->chain.nodes[node].flags & LULL_NODE_PAGED) ||
	    !(s->chain.nodes[node].flags & LULL_NODE_OUT))
		return false;
	for (u32 i = s->chain.nodes[node].unit; i != LULL_NONE; i = s->units.next[i]) {
		const struct lull_unit *unit = &s->units.at[i];

		if (unit->kind == LULL_UNIT_COPY &&
		    lull_units_copy(&s->units, unit)->size_bytes >= LULL_TN(bulk_bytes))
			return true;
	}
	return false;
}

const struct lull_node *lull_claim_node(const struct lull_claim *c)
{
	return c->node == LULL_NONE ? NULL : &c->subject->chain.nodes[c->node];
}
