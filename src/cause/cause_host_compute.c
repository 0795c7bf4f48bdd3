/*
 * host-compute: the launching thread runs the program's own code between launches.
 *
 * Signal:  at least 300 us of a gap (800 us if nothing was recorded there) are neither loading,
 *          writing, waiting for a lock or a CPU, nor the framework's code around launches; if
 *          nothing was recorded, it has to be there in other steps, too.
 * Not it:  Python between launches of a framework (launch-bound); work that ends in a copy to the
 *          device (input-pipeline).
 */
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_GAP && c->is_own && !c->stall && (c->is_seen || c->recurs);
}

static void apply(struct lull_what_if *w)
{
	/* In the worst case it is only moved on the host. */
	if (w->scenario <= 0)
		lull_what_if_drop_trips(w, LULL_CAUSE_IX_host_compute);
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_host_compute);
}

/* Time in which nobody knows what the thread did, or what it waited for. */
static u64 guessed_ns(const struct lull_subject *s)
{
	return s->unseen_ns[LULL_CAUSE_IX_host_compute] + s->mute_ns[LULL_CAUSE_IX_host_compute];
}

/* Where nothing was recorded, it is known by elimination alone. */
static f64 trust(const struct lull_subject *s)
{
	u64 cost_ns = s->cost_ns[LULL_CAUSE_IX_host_compute];

	return 1 - LULL_T(unseen_doubt) * (f64)guessed_ns(s) / (f64)cost_ns;
}

static bool is_guess(const struct lull_subject *s)
{
	return guessed_ns(s) * 2 > s->cost_ns[LULL_CAUSE_IX_host_compute];
}

/* Whether most of it ends in a copy to the device: what it made may be the next batch. */
static bool leads_in(const struct lull_subject *s)
{
	const struct lull_slice *at = s->slices.at;
	u64 all_ns = 0, in_ns = 0;

	for (size_t i = 0; i < s->slices.n; i++) {
		u64 ns = at[i].to_ns - at[i].from_ns;

		if (at[i].cause != LULL_CAUSE_IX_host_compute)
			continue;
		all_ns += ns;
		in_ns += s->chain.nodes[at[i].node].flags & LULL_NODE_IN ? ns : 0;
	}
	return in_ns * 2 > all_ns;
}

/* Where most of it follows results of the device, it may work on them: the device can do that. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	f64 cost_ns = (f64)why->lead->cost_ns[LULL_CAUSE_IX_host_compute] / lull_why_n_steps(why);
	struct lull_what_if w;
	f64 ns;

	(void)is_torch;
	if (!why->has_replay)
		return;
	lull_what_if_init(&w, &why->replay, 0);
	ns = lull_what_if_drop_trips(&w, LULL_CAUSE_IX_host_compute);
	lull_what_if_release(&w);
	if (ns * 2 < cost_ns)
		return;
	snprintf(advice->fix, sizeof(advice->fix), "%s",
		 leads_in(why->lead)
			 ? "if it needs what was copied to the host just before, do it on the "
			   "device: both copies go, too; if not, do it for the next step in "
			   "another thread while the device computes"
			 : "if it works on what was copied to the host just before, do it on the "
			   "device: the copy goes, too; else vectorise it, run it every N steps, "
			   "or in another process");
	snprintf(advice->assumes, sizeof(advice->assumes), "the device does it in no time%s",
		 leads_in(why->lead) ? ", or the other thread in time" : "");
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	if (lull_finding_waits(why, f))
		lull_show_producer(why, f);
	else
		lull_show_samples(why, f);
}

const struct lull_cause lull_cause_host_compute = {
	.id = "host-compute",
	.title = "the launching thread runs other code between launches",
	.because = "the launching thread runs other code instead of launching",
	.because_waits = "the launching thread waits for something else than the device",
	.why = "Code of the program between launches (metrics, augmentation, logging, a wait for "
	       "another thread) keeps the thread from launching. A gap counts if it contains at "
	       "least 300 us of such code where samples, ranges or operators were recorded. "
	       "Where nothing was recorded it has to contain 800 us, in at least two steps; gaps "
	       "without samples halve the confidence. Where it works on at least 64 bytes that "
	       "were copied to the host since the last launch, and is most of the work until the "
	       "next one, the prediction takes it as done on the device: the copies go, too.",
	.fix = "move it out of the loop, vectorise it, run it every N steps, or run it in "
	       "another process",
	.assumes = "all of this code leaves the thread",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.moves = true,
	.is_captured = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.suit = suit,
	.apply = apply,
	.trust = trust,
	.is_guess = is_guess,
	.prove = prove,
};
