/*
 * host-sync: the device became idle because the host waited for it.
 *
 * Signal:  the device is idle while the thread is in a synchronising call or in a copy to the host;
 *          such a copy that the host waits for runs alone; or launches come late since such a wait
 *          drained the queue; or at least 16 values a step are copied to the host one by one; or
 *          samples say that a thread waits for a value while another one copies it (JAX).
 * Not it:  a wait that returns while other streams still run; a wait that no idle time follows; the
 *          wait that a framework adds after a copy from pageable memory, and copies of much data to
 *          such memory that come back (pageable-copy); copies of much data to pinned memory, which
 *          take far longer than the wait for them (exposed-copy).
 */
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/marks.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "model/thread/doing.h"

/* Whether the host waits for the copy: in the call, or in the next one. */
static bool is_waited_for(const struct lull_claim *c, const struct lull_node *node)
{
	const struct lull_unit *unit = &c->subject->units.at[c->unit];

	return node && ((node->flags & LULL_NODE_SYNCED) ||
			node->end_ns > unit->begin_ns + (unit->end_ns - unit->begin_ns) / 2);
}

/* One of many values that are copied one by one, while another thread waits for each. */
static bool is_value(const struct lull_claim *c)
{
	return (c->marks & LULL_MARK_VALUE) && !c->stall && c->pause == LULL_NO_PAUSE;
}

static bool claim(const struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);

	switch (c->place) {
	case LULL_PLACE_COPY: {
		const struct lull_copy *copy = lull_claim_copy(c);

		return is_value(c) ||
		       (copy->direction == LULL_COPY_OUT &&
			(lull_copy_is_pageable(copy) ||
			 (copy->size_bytes < LULL_TN(bulk_bytes) && is_waited_for(c, node))));
	}
	case LULL_PLACE_GAP:
		return (c->inside & LULL_IN_RESULT) ||
		       (is_value(c) && c->gap_ns < LULL_TN(gap_long_ns));
	case LULL_PLACE_LATENCY:
		return is_value(c);
	case LULL_PLACE_CALL:
		return is_value(c) || node->kind == LULL_KIND_OF_SYNC ||
		       (node->flags & LULL_NODE_OUT);
	default:
		return false;
	}
}

/* Whether it copies much to pinned memory: results that somebody wants, and that can overlap. */
static bool is_bulk(const struct lull_what_if *w, const struct lull_replay_node *n)
{
	const struct lull_units *units = &w->replay->subject->units;

	for (u32 i = n->op; i < n->op + n->n_ops; i++) {
		const struct lull_unit *unit = &units->at[w->ops[i].unit];
		const struct lull_copy *copy =
			unit->kind == LULL_UNIT_COPY ? lull_units_copy(units, unit) : NULL;

		if (copy && !lull_copy_is_pageable(copy) && copy->size_bytes >= LULL_TN(bulk_bytes))
			return true;
	}
	return false;
}

static bool is_awaited_out(const struct lull_what_if *w, const struct lull_replay_node *n)
{
	return (n->flags & LULL_NODE_OUT) && !lull_call_copies_out(w->replay->subject, n->node) &&
	       !is_bulk(w, n) &&
	       (n->flags & (LULL_NODE_PAGED | LULL_NODE_SYNCED) || n->wait == LULL_REPLAY_OWN);
}

/* A batched operator saves launches, not work. */
static bool has_real_work(const struct lull_replay_op *ops, const struct lull_replay_node *n)
{
	for (u32 i = n->op; i < n->op + n->n_ops; i++) {
		if (ops[i].dur_ns > LULL_T(batched_work_ns) && !ops[i].is_gone)
			return true;
	}
	return false;
}

/*
 * Kernels of a framework in such a loop are those of its operators, which take many values at once
 * as well. A program's own kernels are its work: a round of a search, a step of a solver.
 */
static bool can_batch(const struct lull_subject *s)
{
	return lull_subject_is_python(s) || lull_subject_is_torch(s);
}

static void apply(struct lull_what_if *w)
{
	const u64 *cost_ns = w->replay->subject->cost_ns;
	bool is_batchable = can_batch(w->replay->subject);
	u32 keep = w->scenario > 0   ? (u32)LULL_T(batched_poor)
		   : w->scenario < 0 ? (u32)LULL_T(batched_good)
				     : (u32)LULL_T(batched);

	/* What stays on the device is computed on there. More than the waits is no part of them. */
	if (w->scenario <= 0 &&
	    cost_ns[LULL_CAUSE_IX_host_sync] >= cost_ns[LULL_CAUSE_IX_cpu_offload])
		lull_what_if_drop_trips(w, LULL_CAUSE_IX_cpu_offload);
	for (u32 i = 0; i < w->n; i++) {
		struct lull_replay_node *n = &w->nodes[i];

		lull_what_if_drop_path(w, i, LULL_CAUSE_IX_host_sync, n->sync_ns);
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_host_sync);
		if (w->replay->subject->marks[n->node] & LULL_MARK_VALUE) {
			lull_what_if_drop_path(w, i, LULL_CAUSE_IX_host_sync, n->gap_ns);
			lull_what_if_remove(w, i);
		}
		if ((n->kind == LULL_KIND_OF_SYNC && !(n->flags & LULL_NODE_OWNED)) ||
		    is_awaited_out(w, n)) {
			/* So does the way to the call. */
			lull_what_if_drop_path(w, i, LULL_CAUSE_IX_host_sync, LULL_T(value_ns));
			lull_what_if_remove(w, i);
		}
		if (is_batchable && n->loop > 1 && n->loop % keep && !has_real_work(w->ops, n)) {
			lull_what_if_drop_path(w, i, LULL_CAUSE_IX_host_sync, n->gap_ns);
			lull_what_if_remove(w, i);
		}
	}
}

/* Whether the prediction takes short kernels of a loop that waits in each iteration for one. */
static bool is_batched(const struct lull_why *why)
{
	const struct lull_replay_node *nodes = why->replay.nodes.at;

	for (size_t i = 0; i < why->replay.nodes.n && can_batch(why->lead); i++) {
		if (nodes[i].loop > 1 && nodes[i].kind == LULL_KIND_OF_LAUNCH &&
		    !has_real_work(why->replay.ops.at, &nodes[i]))
			return true;
	}
	return false;
}

/* Whether most waits in the steps may be for a result: something was copied to the host. */
static bool gets_results(const struct lull_subject *s)
{
	u64 n_out = 0, n_waits = 0;

	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];

		if (node->round == LULL_NONE)
			continue;
		n_out += (node->flags & LULL_NODE_OUT) != 0;
		n_waits += node->kind == LULL_KIND_OF_SYNC && !(node->flags & LULL_NODE_OWNED);
	}
	return n_out && n_out * 2 >= n_waits;
}

static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	if (lull_subject_is_xla(why->lead)) {
		snprintf(advice->fix, sizeof(advice->fix),
			 "read values together, jax.device_get() of all of them, and every N "
			 "steps; until then keep them on the device");
		return;
	}
	if (gets_results(why->lead))
		return;
	snprintf(advice->fix, sizeof(advice->fix),
		 "do not wait there: %swork of one stream runs in its order anyway; wait once at "
		 "the end, or check for errors every N steps",
		 is_torch ? "no torch.cuda.synchronize() in the loop; " : "");
	snprintf(advice->assumes, sizeof(advice->assumes), "the host needs no result of that work");
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	if (is_batched(why))
		snprintf(f->advice.assumes, sizeof(f->advice.assumes),
			 "no control flow needs the value immediately, and the short kernels of "
			 "the loop become one");
	/* Another thread copies: the calls do not tell who waits. */
	if (lull_subject_is_xla(why->lead))
		lull_show_samples(why, f);
	if (why->lead->exposed_ns)
		lull_show(f, "cuda_call", NULL,
			  "%s/step of it until the next launches reach the idle device",
			  lull_why_time((f64)why->lead->exposed_ns / lull_why_n_steps(why)).text);
}

const struct lull_cause lull_cause_host_sync = {
	.id = "host-sync",
	.title = "the host waits for the device in the middle of a step",
	.because =
		"the host waits for the device in the middle of the step, and its queue runs empty",
	.because_once = "the host waits for the device, and its queue runs empty",
	.why = "When the host waits for a result (.item(), .cpu(), print(loss), nonzero, boolean "
	       "indexing, cudaStreamSynchronize), it launches nothing. When it continues, the "
	       "device's queue is empty, and the next launch has to reach the device first. "
	       "Counted: idle time in synchronising calls and in copies to the host, the time of "
	       "such copies that run alone on the device (to pinned memory if they are smaller "
	       "than 1 MiB), and the launch latency after a wait "
	       "until the next work; where a step copies at least 16 values of less than 64 KiB "
	       "to the host with nothing between them on the device, also the time between two of "
	       "them; and gaps in which most samples are in a function of JAX that waits for a "
	       "value. The prediction removes waits and the copies that are waited "
	       "for, with up to 10 us on the way to each. Work of the CPU on tensors that were "
	       "copied so goes, too. A loop of at least "
	       "8 iterations that waits in each is predicted as one batched operator.",
	.fix = "keep the value on the device; read it later or every N steps; copy it to pinned "
	       "memory with cudaMemcpyAsync() and read it a step later",
	.fix_torch = "keep the value on the device; read it later or every N steps; copy it to "
		     "pinned memory with non_blocking=True",
	.assumes = "no control flow needs the value immediately",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "after a wait, until the next launch arrives",
	.family = LULL_FAMILY_WAIT,
	.exposes = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(COPY) | LULL_AT(CALL) | LULL_AT(GAP) | LULL_AT(LATENCY),
	.claim = claim,
	.apply = apply,
	.prove = prove,
	.suit = suit,
};
