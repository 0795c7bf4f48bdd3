/*
 * polling: the launching thread sleeps, or asks again and again whether work is done.
 *
 * Signal:  in a gap of at least 150 us the thread is in a call that sleeps, or in a wait for events
 *          whose time ran out; or two and more questions whether work is done (cudaEventQuery,
 *          cudaStreamQuery) follow each other for at least 150 us.
 * Not it:  a question or two between launches; a sleep in code that loads (input-pipeline).
 */
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/marks.h"
#include "cause/pace.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "model/thread/doing.h"
#include "model/words.h"

static bool claim(const struct lull_claim *c)
{
	bool is_asking = c->marks & LULL_MARK_POLL;

	switch (c->place) {
	case LULL_PLACE_CALL:
		return (c->marks & LULL_MARK_POLLS) && !c->stall && c->pause == LULL_NO_PAUSE;
	case LULL_PLACE_GAP:
		if (is_asking && c->gap_ns < LULL_TN(gap_long_ns))
			return true;
		if (!lull_claim_is_other(c))
			return false;
		return (c->inside & LULL_IN_SLEEP) || (is_asking && (c->inside & LULL_IN_WAIT));
	default:
		return false;
	}
}

/* One wait for the device is left of a loop that asks. */
static void apply(struct lull_what_if *w)
{
	const struct lull_subject *s = w->replay->subject;

	for (u32 i = 0; i < w->n; i++) {
		struct lull_replay_node *n = &w->nodes[i];
		u8 marks = s->marks[n->node];

		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_polling);
		if ((marks & LULL_MARK_POLL) && s->chain.nodes[n->node].slice == LULL_NONE)
			n->gap_ns = 0;
		if (marks & LULL_MARK_POLL_LAST) {
			n->wait = LULL_REPLAY_DEVICE;
			n->call_ns = LULL_T(wait_call_ns);
			n->return_ns = LULL_T(wait_call_ns);
		} else if (marks & LULL_MARK_POLLS) {
			lull_what_if_remove(w, i);
		}
	}
}

/* A loop that keeps a rate is idle by design. */
static void prove(struct lull_why *why, struct lull_finding *f)
{
	f64 period_ns = lull_pace_ns(why->lead, (u8)f->cause);

	if (period_ns <= 0)
		return;
	lull_show(f, "oscall", NULL,
		  "it sleeps until its next turn, every %s, however long the rest takes",
		  lull_why_time(period_ns).text);
	snprintf(f->advice.fix, sizeof(f->advice.fix),
		 "none if the program is to keep this rate: then the device is idle by design; "
		 "else a shorter period, or no sleep");
	snprintf(f->advice.assumes, sizeof(f->advice.assumes),
		 "the program need not wait for its turn");
}

const struct lull_cause lull_cause_polling = {
	.id = "polling",
	.title = "the launching thread sleeps, or polls",
	.because =
		"the launching thread sleeps, or asks again and again whether something is ready",
	.why = "A thread that sleeps notices the end of work, or new input, only when it wakes "
	       "up. Counted are gaps of at least 150 us in which the thread is in a call that "
	       "sleeps (nanosleep, usleep, time.sleep), or in poll or select whose time runs out, "
	       "and loops of cudaEventQuery or cudaStreamQuery that last at least 150 us, while "
	       "the device is idle. The prediction replaces each loop by one wait for the device, "
	       "and removes other sleeps. A sleep in most steps that makes up for what the rest "
	       "of the step takes (the moments until which the thread sleeps vary at most half "
	       "as much as the length of the sleeps, in at least 8 steps) keeps a rate: such a "
	       "program may be idle by design, and the answer says so.",
	.fix = "wait instead of sleeping: cudaEventSynchronize() or cudaStreamSynchronize() for "
	       "the device, a condition variable or a blocking queue for input",
	.fix_torch = "wait instead of sleeping: event.synchronize() for the device, queue.get() or "
		     "a condition variable for input",
	.assumes = "what is waited for is there when the thread asks first, or the device has it",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "sleeps or questions between CUDA calls",
	.family = LULL_FAMILY_WAIT,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_OS,
	.claims_at = LULL_AT(CALL) | LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.prove = prove,
};
