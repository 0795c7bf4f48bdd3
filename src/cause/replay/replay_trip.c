/*
 * replay_trip - results that go to the host to be worked on there.
 *
 * A trip begins where a result is copied to the host, and ends with the next launch. What the host
 * does with the result, the device can do as well: then its copies in both directions go, and the
 * waits for them.
 */
#include "cause/cause.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

/* Whether the call copies a result to the host, of more than a number or two. */
static bool begins(const struct lull_what_if *w, const struct lull_replay_node *n)
{
	const struct lull_subject *s = w->replay->subject;
	const struct lull_unit *unit;

	if (n->kind != LULL_KIND_OF_COPY || !(n->flags & LULL_NODE_OUT) || !n->n_ops ||
	    lull_call_copies_out(s, n->node))
		return false;
	unit = &s->units.at[w->ops[n->op].unit];
	return unit->kind == LULL_UNIT_COPY &&
	       lull_units_copy(&s->units, unit)->size_bytes >= LULL_TN(result_bytes);
}

/* Causes whose work may be on what came. */
static const u8 work[] = { LULL_CAUSE_IX_host_compute, LULL_CAUSE_IX_cpu_offload,
			   LULL_CAUSE_IX_input_pipeline };

/* The work of a trip, and what one cause has of it. */
struct trip {
	f64 all_ns, ns;
};

/* The call that ends the trip which begins at `from`. */
static u32 find_end(const struct lull_what_if *w, u32 from, u8 cause, struct trip *trip)
{
	u8 chain = w->nodes[from].chain;

	*trip = (struct trip){ 0 };
	for (u32 i = from + 1; i < w->n; i++) {
		if (w->nodes[i].chain != chain)
			continue;
		trip->ns += lull_what_if_slices_ns(w, i, cause);
		for (size_t k = 0; k < LULL_COUNT_OF(work); k++)
			trip->all_ns += lull_what_if_slices_ns(w, i, work[k]);
		if (w->nodes[i].kind == LULL_KIND_OF_LAUNCH)
			return i;
	}
	return w->n;
}

static void drop(struct lull_what_if *w, u32 from, u32 end)
{
	for (u32 i = from; i < w->n && i <= end; i++) {
		u8 kind = w->nodes[i].kind;

		if (w->nodes[i].chain != w->nodes[from].chain)
			continue;
		for (size_t k = 0; i > from && k < LULL_COUNT_OF(work); k++)
			lull_what_if_drop_slices(w, i, work[k]);
		if (kind == LULL_KIND_OF_COPY || kind == LULL_KIND_OF_SYNC)
			lull_what_if_remove(w, i);
	}
}

f64 lull_what_if_drop_trips(struct lull_what_if *w, u8 cause)
{
	u32 done[8] = { 0 }; /* of each chain */
	struct trip trip;
	f64 sum = 0;

	/* What a server computed leaves the program; what follows works on something else. */
	if (w->replay->subject->host.is_server)
		return 0;
	for (u32 i = 0; i < w->n; i++) {
		u32 end;

		if (i < done[w->nodes[i].chain] || !begins(w, &w->nodes[i]))
			continue;
		end = find_end(w, i, cause, &trip);
		done[w->nodes[i].chain] = end;
		/* Where it has less than half, the trip is made for something else. */
		if (trip.ns < LULL_T(gap_long_ns) || trip.ns * 2 < trip.all_ns)
			continue;
		drop(w, i, end);
		sum += trip.ns;
	}
	return sum / w->replay->n_rounds;
}
