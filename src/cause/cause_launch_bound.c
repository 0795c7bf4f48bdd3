/*
 * launch-bound: the device finishes each piece of work before the next one is launched.
 *
 * Signal:  the device is idle while the thread is in launching calls, or in the framework's code
 *          between them, or while a launch is on its way.
 * Not it:  launches that come late since the host waited for the device before (host-sync); gaps
 *          that hold something else. It is what is left: waits, allocations and blocking copies
 *          have to be gone before a graph can be captured.
 */
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "model/step.h"

static bool claim(const struct lull_claim *c)
{
	switch (c->place) {
	case LULL_PLACE_CALL:
		return !c->stall;
	case LULL_PLACE_LATENCY:
		return true;
	case LULL_PLACE_GAP:
		return !c->is_own && !c->stall;
	default:
		return false;
	}
}

/* Whether most launches are in the optimizer's update. */
static bool is_update(const struct lull_what_if *w)
{
	u32 n = 0, n_update = 0;

	for (u32 i = 0; i < w->n; i++) {
		if (w->nodes[i].kind != LULL_KIND_OF_LAUNCH)
			continue;
		n++;
		n_update += !!(w->nodes[i].inside & LULL_IN_OPTIMIZER);
	}
	return n_update * 2 > n;
}

static void fuse_update(struct lull_what_if *w)
{
	u32 n = 0;

	for (u32 i = 0; i < w->n; i++) {
		if (!(w->nodes[i].inside & LULL_IN_OPTIMIZER))
			continue;
		w->nodes[i].gap_ns /= LULL_T(update_fused);
		if (w->nodes[i].kind == LULL_KIND_OF_LAUNCH && n++ % LULL_TN(update_fused))
			lull_what_if_remove(w, i);
	}
}

/*
 * Whether a graph leaves out the program's own code before this launch, where that was seen: Python
 * of the model between two launches runs while the graph is captured, and then no more.
 */
static bool is_captured(const struct lull_what_if *w, u32 node)
{
	const struct lull_replay_node *n = &w->nodes[node];

	return node && n->kind == LULL_KIND_OF_LAUNCH && !n->starts &&
	       n[-1].kind == LULL_KIND_OF_LAUNCH && n[-1].chain == n->chain &&
	       n->gap_ns < LULL_T(captured_ns) && lull_subject_is_python(w->replay->subject);
}

/* What stays outside of the graph: all that is not the launch path. */
static f64 outside_ns(const struct lull_what_if *w, u32 node)
{
	const struct lull_subject *s = w->replay->subject;
	const struct lull_slice *at = s->slices.at;
	u32 ix = w->nodes[node].node;
	bool is_inside = is_captured(w, node);
	f64 sum = 0;

	for (size_t i = s->chain.nodes[ix].slice;
	     i != LULL_NONE && i < s->slices.n && at[i].node == ix; i++) {
		if (at[i].cause != LULL_CAUSE_IX_launch_bound &&
		    !(is_inside && at[i].is_seen && lull_causes[at[i].cause]->is_captured))
			sum += (f64)(at[i].to_ns - at[i].from_ns);
	}
	return sum;
}

static void use_graph(struct lull_what_if *w)
{
	f64 poor = w->scenario > 0 ? LULL_T(graph_poor) : w->scenario < 0 ? LULL_T(graph_good) : 1;

	for (u32 i = 0; i < w->n; i++) {
		struct lull_replay_node *n = &w->nodes[i];
		bool is_outside = n->wait != LULL_REPLAY_RUNS || n->kind == LULL_KIND_OF_ALLOC;

		n->gap_ns = outside_ns(w, i) + (n->starts ? LULL_T(graph_ns) * poor : 0);
		if (is_outside)
			continue;
		n->call_ns = n->n_ops * LULL_T(graph_node_ns) * poor;
		for (u32 k = n->op; k < n->op + n->n_ops; k++) {
			w->ops[k].next_ns = LULL_T(graph_next_ns) * poor;
			w->ops[k].launch_ns = LULL_T(graph_next_ns);
		}
	}
	/* What a kernel of a graph takes is known without the cost of recording a launch. */
	for (u32 i = 0; i < w->n; i++) {
		if (w->nodes[i].kind == LULL_KIND_OF_LAUNCH)
			w->nodes[i].kind = LULL_KIND_OF_OTHER;
	}
}

static void apply(struct lull_what_if *w)
{
	if (is_update(w))
		fuse_update(w);
	else
		use_graph(w);
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	f64 n_steps = lull_why_n_steps(why), n = (f64)s->n_kernels;
	u64 sum = 0;

	for (int i = 0; i < LULL_N_KERNEL_CLASSES; i++)
		sum += s->class_ns[i];
	if (n > 0)
		lull_show(f, "kernel", NULL,
			  "%s kernel%s per step, %s each on average; one is launched every %s",
			  lull_show_count(n / n_steps).text, n == n_steps ? "" : "s",
			  lull_why_time((f64)sum / n).text,
			  lull_why_time(why->step_ns * n_steps / n).text);
	/* Launches too short to have a place of their own are in some function all the same. */
	if (!f->at.function)
		lull_show_samples(why, f);
}

/* How often a step waits for the device. */
static f64 n_waits(const struct lull_why *why)
{
	const struct lull_chain *c = &why->lead->chain;
	u64 n_syncs = 0, n_out = 0;

	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];

		if (node->round == LULL_NONE || node->round < why->lead->rounds.first_steady)
			continue;
		n_syncs += node->kind == LULL_KIND_OF_SYNC && !(node->flags & LULL_NODE_OWNED);
		n_out += (node->flags & LULL_NODE_OUT) && (node->flags & LULL_NODE_PAGED);
	}
	/* A framework makes both for one value. */
	return (f64)(n_syncs > n_out ? n_syncs : n_out) / lull_why_n_steps(why);
}

/*
 * A program that trains has an optimizer, which may be fused. A step may end with a wait, but one
 * that waits in its middle cannot be captured.
 */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	f64 n = n_waits(why);

	if (lull_subject_is_xla(why->lead))
		snprintf(advice->fix, sizeof(advice->fix),
			 "one function with jax.jit around the whole step, the optimizer as well, "
			 "and jax.lax.scan over several steps; a larger batch");
	if (n >= 2)
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "shapes do not change, and the step can be captured, without its %s "
			 "waits for the device",
			 lull_show_count(n).text);
	if (is_torch && lull_trains(why->lead->reader))
		snprintf(
			advice->fix, sizeof(advice->fix), "%s",
			"CUDA graphs or torch.compile(mode=\"reduce-overhead\"), a fused optimizer "
			"(fused=True), a larger batch");
}

const struct lull_cause lull_cause_launch_bound = {
	.id = "launch-bound",
	.title = "the device waits for launches",
	.because = "its work is launched too slowly: each kernel ends before the next one arrives",
	.why = "A launch takes the host 5 to 10 us, an operator of a framework 20 to 100 us. "
	       "Shorter kernels leave the device idle between them. Counted is the thread's time "
	       "in launching calls, in gaps below 150 us, in operators that make CUDA calls and "
	       "in the framework's own code, and the latency of launches. This cause gets what "
	       "no other cause explains: a specific cause comes first, since a stream with a "
	       "wait, an allocation or a blocking copy cannot be captured into a graph. The "
	       "prediction is a graph of the step (10 us, and 0.9 us per kernel), which leaves out "
	       "Python between launches, too, in gaps below 1.2 ms. If ranges or "
	       "sampled Python stacks show that most launches are the optimizer's, it is a fused "
	       "update.",
	.fix = "CUDA graphs, fewer and larger kernels, a larger batch",
	.fix_torch = "CUDA graphs or torch.compile(mode=\"reduce-overhead\"), a larger batch",
	.assumes = "shapes do not change, and the whole step can be captured",
	.kind = LULL_CAUSE_RESIDUE,
	.nowhere = "launches and the code around them",
	.family = LULL_FAMILY_LAUNCH,
	.places = LULL_PLACES_BY_RANGE,
	.is_default = true,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(CALL) | LULL_AT(GAP) | LULL_AT(LATENCY),
	.claim = claim,
	.apply = apply,
	.prove = prove,
	.suit = suit,
};
