/*
 * os-scheduling: the launching thread is ready to run but preempted.
 *
 * Signal:  in a gap or a call the thread was preempted and not yet back, by the scheduler's
 *          records; the device has done what a call waits for, and the thread gets a CPU late
 *          (lost.h); without such records, stalls that strike calls as often as gaps.
 * Not it:  a thread that sleeps or waits; stalls that spare CUDA calls (gil).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/lost.h"
#include "cause/marks.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "cause/why.h"
#include "model/span.h"

static bool claim(const struct lull_claim *c)
{
	if (c->place != LULL_PLACE_GAP && c->place != LULL_PLACE_CALL)
		return c->place == LULL_PLACE_LOST;
	return c->pause == LULL_HOST_PREEMPTED || c->stall == LULL_STALL_OS;
}

/* A call that returns as soon as it may. */
static void hurry(const struct lull_subject *s, struct lull_replay_node *n)
{
	const struct lull_node *node = &s->chain.nodes[n->node];
	f64 *ns = n->wait == LULL_REPLAY_RUNS ? &n->call_ns : &n->return_ns;
	u64 part_ns = *ns > 0 ? (u64)*ns : 0;

	if (part_ns > node->end_ns - node->begin_ns)
		part_ns = node->end_ns - node->begin_ns;
	*ns -= (f64)lull_lost_ns(s, n->node, node->end_ns - part_ns, node->end_ns);
}

static void apply(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		const struct lull_subject *s = w->replay->subject;
		const struct lull_node *node = &s->chain.nodes[w->nodes[i].node];

		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_os_scheduling);
		if (node->cause == LULL_CAUSE_IX_os_scheduling ||
		    (s->marks[w->nodes[i].node] & LULL_MARK_PREEMPTED))
			w->nodes[i].call_ns = w->replay->call_ns;
		else
			hurry(s, &w->nodes[i]);
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

/* The CPUs that the recorded threads of all processes use together in the steady steps. */
struct use {
	f64 cpus;
	u32 n_on; /* those that they were seen on */
};

static void add_stays(const struct lull_subject *s, struct lull_span steady, u64 *by_cpu)
{
	struct lull_sched_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_sched, steady.from_ns, steady.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct lull_span stay = {
				cols.start_ns[i], lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i])
			};

			stay = lull_span_cut(stay, steady.from_ns, steady.to_ns);
			by_cpu[cols.cpu[i]] += stay.to_ns - stay.from_ns;
		}
	}
	lull_cursor_release(&c);
}

static struct use find_use(const struct lull_subject *s)
{
	u64 from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
	u64 *by_cpu = lull_alloc(UINT16_MAX + 1, sizeof(*by_cpu));
	f64 window_ns = (f64)s->window_ns;
	struct use u = { 0 };

	add_stays(s, (struct lull_span){ from_ns, from_ns + s->window_ns }, by_cpu);
	for (u32 i = 0; s->window_ns && i <= UINT16_MAX; i++) {
		u.cpus += (f64)by_cpu[i] / window_ns;
		u.n_on += by_cpu[i] > 0;
	}
	free(by_cpu);
	return u;
}

/* They hold each other up on a few CPUs although there are more: something keeps them there. */
static bool are_pinned(const struct use *u, u32 n_cpus)
{
	return u->n_on && u->n_on < n_cpus && u->cpus >= LULL_T(pinned) * u->n_on;
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	struct use used = find_use(s);
	bool are_others;

	lull_show_stalls(why, f);
	if (s->host.preempted_ns)
		lull_show(f, "sched", NULL, "no CPU for %.0f %% of the time in which it could run",
			  100 * lull_lost_share(s));
	if (used.cpus <= 0 || !s->n_cpus)
		return;
	if (are_pinned(&used, s->n_cpus)) {
		lull_show(f, "sched", NULL,
			  "the recorded threads fill %u of %u CPUs and run on no other: CPU "
			  "affinity or a cpuset keeps them there",
			  used.n_on, s->n_cpus);
		snprintf(f->advice.fix, sizeof(f->advice.fix),
			 "let the program use more CPUs (taskset, sched_setaffinity, the cpuset of "
			 "the container), or fewer busy threads");
		return;
	}
	are_others = used.cpus < LULL_T(cpus_taken) * s->n_cpus;
	lull_show(f, "sched", NULL, "the recorded threads use %.1f of %u CPUs%s", used.cpus,
		  s->n_cpus, are_others ? ": other programs or a CPU limit take the rest" : "");
	/* Fewer threads of its own would not help. */
	if (are_others)
		lull_advise_others(why, f);
}

const struct lull_cause lull_cause_os_scheduling = {
	.id = "os-scheduling",
	.title = "the launching thread is preempted",
	.because = "the launching thread has to wait for a CPU: other threads run there",
	.why = "A thread that is ready but not running launches nothing. If scheduling was "
	       "recorded, it shows when the thread was preempted, in CUDA calls, too. It does not "
	       "show when a thread that slept was woken up. Where the device has done what a "
	       "call waits for, and the thread gets a CPU more than 150 us later, that counts if "
	       "the thread also lacks CPUs otherwise: for at least a tenth of the time in which "
	       "it could run. Without such records, stalls (see gil) are "
	       "taken for preemption if they hit CUDA calls as often as the share of time in "
	       "such calls suggests.",
	.fix = "fewer busy threads than CPUs, CPU affinity, a larger CPU limit for the container",
	.fix_torch = "fewer busy threads than CPUs (OMP_NUM_THREADS, num_workers), CPU affinity, "
		     "a larger CPU limit for the container",
	.fix_more = "run it without the other programs, or on CPUs of its own (CPU affinity); in a "
		    "container, with a larger CPU limit",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "preempted between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_SCHED,
	.claims_at = LULL_AT(CALL) | LULL_AT(GAP) | LULL_AT(LOST),
	.claim = claim,
	.apply = apply,
	.table = table,
	.trust = trust,
	.prove = prove,
};
