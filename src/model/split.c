#include "model/split.h"

/*
 * One sweep over the units by begin. `at_ns` is how far time has been cut. Before each unit the
 * time up to its start is cut: what runs is known, since nothing begins in between.
 */

#define MAX_ACTIVE 64 /* copies and collectives at once; more are taken as one */

struct active {
	u32 unit[MAX_ACTIVE];
	size_t n;
};

struct sweep {
	const struct lull_units *units;
	const struct lull_rounds *rounds;
	lull_split_visit *visit;
	void *ctx;
	u64 at_ns;
	u64 compute_ns; /* end of the kernels so far */
	struct active collectives, copies;
	u32 round;
};

/* Give out [at_ns, to_ns) as one kind, cut where steps end. */
static void put(struct sweep *s, enum lull_split_kind kind, u64 to_ns, u32 unit)
{
	while (s->at_ns < to_ns && s->round < s->rounds->all.n) {
		u64 end_ns = lull_round_end_ns(s->rounds, s->round);
		struct lull_split_piece piece = { s->at_ns, end_ns < to_ns ? end_ns : to_ns,
						  s->round, unit, (u8)kind };

		if (piece.to_ns > piece.from_ns)
			s->visit(s->ctx, &piece);
		s->at_ns = piece.to_ns > s->at_ns ? piece.to_ns : s->at_ns;
		if (s->at_ns >= end_ns)
			s->round++;
	}
	/* After the last step nothing is given out. */
	s->at_ns = s->at_ns > to_ns ? s->at_ns : to_ns;
}

/* A full list gives up the one that ends first, if the new one ends later. */
static void enter(struct active *a, const struct lull_units *units, u32 unit)
{
	size_t first = 0;

	if (a->n < MAX_ACTIVE) {
		a->unit[a->n++] = unit;
		return;
	}
	for (size_t i = 1; i < a->n; i++) {
		if (units->at[a->unit[i]].end_ns < units->at[a->unit[first]].end_ns)
			first = i;
	}
	if (units->at[a->unit[first]].end_ns < units->at[unit].end_ns)
		a->unit[first] = unit;
}

/* Give out what the active ones cover up to to_ns, each from where the one before it ended. */
static void put_active(struct sweep *s, struct active *a, enum lull_split_kind kind, u64 to_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		u64 end_ns = s->units->at[a->unit[i]].end_ns;

		if (end_ns > s->at_ns && s->at_ns < to_ns)
			put(s, kind, end_ns < to_ns ? end_ns : to_ns, a->unit[i]);
		if (end_ns > to_ns)
			a->unit[n++] = a->unit[i];
	}
	a->n = n;
}

static void cut_until(struct sweep *s, u64 to_ns, u32 next)
{
	if (s->compute_ns > s->at_ns)
		put(s, LULL_SPLIT_COMPUTE, s->compute_ns < to_ns ? s->compute_ns : to_ns,
		    LULL_NONE);
	put_active(s, &s->collectives, LULL_SPLIT_COLLECTIVE, to_ns);
	put_active(s, &s->copies, LULL_SPLIT_COPY, to_ns);
	if (s->at_ns < to_ns)
		put(s, LULL_SPLIT_IDLE, to_ns, next);
}

void lull_split_run(const struct lull_units *units, const struct lull_rounds *rounds,
		    lull_split_visit *visit, void *ctx)
{
	u32 n = lull_rounds_n_steady(rounds), first = rounds->first_steady;
	struct sweep s = { .units = units, .rounds = rounds, .visit = visit, .ctx = ctx };
	u64 end_ns;

	if (!n)
		return;
	s.round = first;
	s.at_ns = lull_round_begin_ns(rounds, first);
	end_ns = lull_round_end_ns(rounds, (u32)rounds->all.n - 1);
	for (u32 i = 0; i < units->n && s.at_ns < end_ns; i++) {
		const struct lull_unit *unit = &units->at[i];

		if (unit->begin_ns > s.at_ns)
			cut_until(&s, unit->begin_ns < end_ns ? unit->begin_ns : end_ns, i);
		if (unit->kind == LULL_UNIT_COLLECTIVE)
			enter(&s.collectives, units, i);
		else if (unit->kind == LULL_UNIT_COPY)
			enter(&s.copies, units, i);
		else if (unit->end_ns > s.compute_ns)
			s.compute_ns = unit->end_ns;
	}
	cut_until(&s, end_ns, LULL_NONE);
}
