/*
 * replay_trip - results that go to the host to be worked on there.
 *
 * A trip begins where a result is copied to the host, and ends with the next launch. What the host
 * does with the result, the device can do as well: then its copies in both directions go, and the
 * waits for them.
 *
 * What the host makes without anything from the device is copied to it as well: where the device
 * makes it, that copy goes. What it is made of has to be copied instead; how much that is nobody
 * knows, so it takes no time here.
 */
#include "cause/cause.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

/* Causes whose work may be on what came. */
static const u8 work[] = { LULL_CAUSE_IX_host_compute, LULL_CAUSE_IX_cpu_offload,
			   LULL_CAUSE_IX_input_pipeline };

/* What the host would not be held up by either: memory for what it makes, others on its CPU. */
static const u8 beside[] = { LULL_CAUSE_IX_page_faults, LULL_CAUSE_IX_os_scheduling };

/* The work of a trip, and what one cause has of it. */
struct trip {
	f64 all_ns, ns;
};

/* Bytes that the call copies in this direction (enum lull_node_flags). */
static u64 copied(const struct lull_what_if *w, u32 node, u8 flag)
{
	const struct lull_replay_node *n = &w->nodes[node];
	const struct lull_units *units = &w->replay->subject->units;
	const struct lull_unit *unit;

	if (n->kind != LULL_KIND_OF_COPY || !(n->flags & flag) || !n->n_ops)
		return 0;
	unit = &units->at[w->ops[n->op].unit];
	return unit->kind == LULL_UNIT_COPY ? lull_units_copy(units, unit)->size_bytes : 0;
}

/*
 * Whether the call copies a result to the host, of more than a number or two. What the CPU computes
 * on is not there to be kept.
 */
static bool begins(const struct lull_what_if *w, u32 node, u8 cause)
{
	return copied(w, node, LULL_NODE_OUT) >= LULL_TN(result_bytes) &&
	       (cause == LULL_CAUSE_IX_cpu_offload ||
		!lull_call_copies_out(w->replay->subject, w->nodes[node].node));
}

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

/* What the host does before the call, and what that costs it. */
static void drop_work(struct lull_what_if *w, u32 node)
{
	for (size_t k = 0; k < LULL_COUNT_OF(work); k++)
		lull_what_if_drop_slices(w, node, work[k]);
	for (size_t k = 0; k < LULL_COUNT_OF(beside); k++)
		lull_what_if_drop_slices(w, node, beside[k]);
}

static void drop(struct lull_what_if *w, u32 from, u32 end)
{
	for (u32 i = from; i < w->n && i <= end; i++) {
		u8 kind = w->nodes[i].kind;

		if (w->nodes[i].chain != w->nodes[from].chain)
			continue;
		if (i > from)
			drop_work(w, i);
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

		if (i < done[w->nodes[i].chain] || !begins(w, i, cause))
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

static u32 round_of(const struct lull_what_if *w, u32 node)
{
	return w->replay->subject->chain.nodes[w->nodes[node].node].round;
}

void lull_what_if_drop_made(struct lull_what_if *w, u8 cause)
{
	u32 round = LULL_NONE; /* of what was made last */

	for (u32 i = 0; i < w->n; i++) {
		if (!w->nodes[i].is_gone && copied(w, i, LULL_NODE_IN) &&
		    lull_what_if_slices_ns(w, i, cause) >= LULL_T(gap_long_ns)) {
			round = round_of(w, i);
			drop_work(w, i);
			lull_what_if_remove(w, i);
		} else if (round != LULL_NONE && round_of(w, i) == round) {
			/* Memory for it is given back in the same step. */
			lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_page_faults);
		}
	}
}
