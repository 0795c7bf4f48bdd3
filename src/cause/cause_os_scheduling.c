/*
 * os-scheduling: the launching thread is ready to run but preempted.
 *
 * Signal:  in a gap the thread was preempted and not yet back, by the scheduler's records; without
 *          these, stalls that strike inside calls as often as between them.
 * Not it:  a thread that sleeps or waits; stalls that spare CUDA calls (gil).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/marks.h"
#include "cause/replay.h"

static bool claim(const struct lull_claim *c)
{
	return (c->place == LULL_PLACE_GAP || c->place == LULL_PLACE_CALL) &&
	       (c->pause == LULL_HOST_PREEMPTED || c->stall == LULL_STALL_OS);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		const struct lull_node *node = &w->replay->subject->chain.nodes[w->nodes[i].node];

		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_os_scheduling);
		if (node->cause == LULL_CAUSE_IX_os_scheduling ||
		    (w->replay->subject->marks[w->nodes[i].node] & LULL_MARK_PREEMPTED))
			w->nodes[i].call_ns = w->replay->call_ns;
	}
}

static const char *table(const struct lull_subject *s)
{
	return s->host.has_sched ? "sched" : NULL;
}

static f64 trust(const struct lull_subject *s)
{
	return s->stalls.kind == LULL_STALL_OS ? s->stalls.confidence : 1;
}

const struct lull_cause lull_cause_os_scheduling = {
	.id = "os-scheduling",
	.title = "the launching thread is preempted",
	.because = "the launching thread is preempted: other threads run on its CPU",
	.why = "A thread that is ready but not running launches nothing. If scheduling was "
	       "recorded, it shows when the thread was preempted. If not, stalls (see gil) are "
	       "taken for preemption if they hit CUDA calls as often as the share of time in "
	       "such calls suggests.",
	.fix = "fewer busy threads than CPUs, CPU affinity, a larger CPU limit for the container",
	.fix_torch = "fewer busy threads than CPUs (OMP_NUM_THREADS, num_workers), CPU affinity, "
		     "a larger CPU limit for the container",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "preempted between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_SCHED,
	.claims_at = LULL_AT(CALL) | LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.table = table,
	.trust = trust,
	.prove = lull_show_stalls,
};
