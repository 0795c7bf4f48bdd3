/*
 * exposed-copy: copies are fast and asynchronous, but nothing computes at the same time.
 *
 * Signal:  a copy between pinned memory and the device, or within the device, runs alone.
 * Not it:  pageable memory (pageable-copy); a copy of less than 1 MiB to the host that somebody
 *          waits for (host-sync); a copy under a kernel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_COPY;
}

/* A copy that shares its stream with kernels can move; one that has its own is there already. */
static bool moves_aside(const struct lull_units *units, const struct lull_unit *unit,
			const bool *computes)
{
	const struct lull_copy *copy;

	if (unit->kind != LULL_UNIT_COPY || !computes[unit->stream])
		return false;
	copy = lull_units_copy(units, unit);
	return !lull_copy_is_pageable(copy) && copy->size_bytes >= LULL_LN(batch_bytes);
}

/* What a copy between host and device takes if nothing is copied the other way. */
static f64 alone_ns(const struct lull_what_if *w, u32 op)
{
	const struct lull_units *units = &w->replay->subject->units;
	const struct lull_copy *copy = lull_units_copy(units, &units->at[w->ops[op].unit]);

	if (copy->direction != LULL_COPY_IN && copy->direction != LULL_COPY_OUT)
		return 0;
	return fmin((f64)copy->size_bytes / w->replay->link[copy->direction] * 1e9,
		    w->ops[op].dur_ns);
}

/* Copies to a stream of their own for each direction; who used them ran one step later. */
static void apply(struct lull_what_if *w)
{
	const struct lull_units *units = &w->replay->subject->units;
	bool *computes = lull_alloc(units->lanes.n + 1, sizeof(*computes));
	f64 copy_ns = 0, compute_ns = 0, both_ns = 0, slower;

	for (u32 i = 0; i < w->n_ops; i++) {
		const struct lull_unit *unit = &units->at[w->ops[i].unit];

		computes[unit->stream] |= unit->kind <= LULL_UNIT_COLLECTIVE;
	}
	for (u32 i = 0; i < w->n_ops; i++) {
		const struct lull_unit *unit = &units->at[w->ops[i].unit];

		if (!moves_aside(units, unit, computes)) {
			compute_ns += w->ops[i].dur_ns;
			continue;
		}
		copy_ns += w->ops[i].dur_ns;
		both_ns += alone_ns(w, i);
		w->ops[i].stream =
			(u16)(units->lanes.n + lull_units_copy(units, unit)->direction % 4);
		w->ops[i].after = LULL_NONE;
	}
	w->floor_ns = both_ns / w->replay->n_rounds / LULL_T(duplex);
	slower = compute_ns > copy_ns ? LULL_T(beside_copy) * copy_ns / compute_ns
		 : copy_ns > 0	      ? LULL_T(beside_copy)
				      : 0;
	slower *= w->scenario < 0 ? LULL_T(beside_good) : w->scenario > 0 ? LULL_T(beside_poor) : 1;
	for (u32 i = 0; i < w->n_ops; i++) {
		const struct lull_replay_op *after =
			w->ops[i].after == LULL_NONE ? NULL : &w->ops[w->ops[i].after];

		if (after && moves_aside(units, &units->at[after->unit], computes))
			w->ops[i].after = LULL_NONE;
		if (!moves_aside(units, &units->at[w->ops[i].unit], computes))
			w->ops[i].dur_ns *= 1 + slower;
	}
	free(computes);
}

static const char *table(const struct lull_subject *s)
{
	(void)s;
	return "memcpy";
}

/* What copies take that are not of pageable memory, by direction. */
struct taken {
	u64 in_ns, out_ns, within_ns;
};

static struct taken sum_taken(const struct lull_subject *s)
{
	struct taken t = { 0 };

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		const struct lull_copy *copy;
		u64 ns = unit->end_ns - unit->begin_ns;

		if (unit->kind != LULL_UNIT_COPY || unit->round == LULL_NONE)
			continue;
		copy = lull_units_copy(&s->units, unit);
		if (lull_copy_is_pageable(copy))
			continue;
		if (copy->direction == LULL_COPY_IN)
			t.in_ns += ns;
		else if (copy->direction == LULL_COPY_OUT)
			t.out_ns += ns;
		else
			t.within_ns += ns;
	}
	return t;
}

/* Those that have next to nothing of the time prove nothing. */
static void prove(struct lull_why *why, struct lull_finding *f)
{
	struct taken t = sum_taken(why->lead);
	f64 least_ns = LULL_T(line_share) * (f64)(t.in_ns + t.out_ns + t.within_ns);

	if ((f64)t.in_ns >= least_ns)
		lull_show_copies(why, f, false, LULL_COPY_IN);
	if ((f64)t.out_ns >= least_ns)
		lull_show_copies(why, f, false, LULL_COPY_OUT);
	if ((f64)t.within_ns >= least_ns)
		lull_show_copies(why, f, false, LULL_COPY_WITHIN);
}

/* What is said names the directions that take most of the time: at least half of the other one. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	struct taken t = sum_taken(why->lead);

	(void)is_torch;
	if (t.within_ns > t.in_ns + t.out_ns) {
		snprintf(advice->fix, sizeof(advice->fix),
			 "write data where it is needed instead of copying it there, or copy it on "
			 "a second stream while something else computes");
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "nothing that computes meanwhile needs the copy");
		return;
	}
	if (t.out_ns * 2 <= t.in_ns || !t.out_ns)
		return;
	snprintf(advice->fix, sizeof(advice->fix), "%s",
		 t.in_ns * 2 > t.out_ns ? "copy the next batch in and the last results out on "
					  "streams of their own while this one computes, each with "
					  "a buffer of its own, and order them with events"
					: "copy results to a buffer of their own on a second "
					  "stream while the next ones are computed, and read them "
					  "a step later");
	snprintf(advice->assumes, sizeof(advice->assumes), "%s",
		 t.in_ns * 2 > t.out_ns ? "the data of the next step is ready one step earlier, "
					  "and results may come one later"
					: "results may come one step later");
}

const struct lull_cause lull_cause_exposed_copy = {
	.id = "exposed-copy",
	.title = "copies run alone: nothing computes at the same time",
	.because = "data is copied while nothing computes",
	.why = "A copy from pinned memory needs no thread and no multiprocessor: on a separate "
	       "stream it can overlap the kernels of the previous batch. Time counts in which "
	       "only a copy runs, also one of at least 1 MiB to pinned memory that the host waits "
	       "for. The prediction moves copies to one stream per direction and "
	       "makes kernels up to 8 % slower while copies run, as measured. Both directions "
	       "together move 1.4 times as much as one alone.",
	.fix = "copy the next batch on a second stream while this one computes, and let the "
	       "first stream wait for it with an event",
	.assumes = "the data of the next step is ready one step earlier",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_COPY,
	.needs = LULL_NEED_WORK,
	.claims_at = LULL_AT(COPY),
	.claim = claim,
	.apply = apply,
	.table = table,
	.prove = prove,
	.suit = suit,
};
