/*
 * unified-memory: pages of managed memory move between host and device while nothing computes.
 *
 * Signal:  a copy from or to managed memory runs, and nothing else; or launched work does not begin
 *          while pages move; or the thread, in a long gap, mostly waits for pages that it touches.
 *          A busy device whose pages move for a fifth of the step is named, too: its kernels wait
 *          for them.
 * Not it:  a few pages that move under kernels; copies that the program asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "model/thread/doing.h"

static bool claim(const struct lull_claim *c)
{
	if (c->place == LULL_PLACE_GAP)
		return c->is_moving || (lull_claim_is_other(c) && (c->inside & LULL_IN_MANAGED));
	if (c->place == LULL_PLACE_LATENCY || c->place == LULL_PLACE_DEVICE)
		return c->is_moving;
	return c->place == LULL_PLACE_COPY && lull_copy_is_managed(lull_claim_copy(c));
}

/* Of kernels that ran less often nobody knows what they take without waiting. */
#define LEAST_RUNS 8u

struct run {
	u32 launch;
	f64 dur_ns;
};

static int by_launch(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->launch != y->launch)
		return x->launch < y->launch ? -1 : 1;
	return (x->dur_ns > y->dur_ns) - (x->dur_ns < y->dur_ns);
}

static u32 launch_of(const struct lull_replay *p, u32 op)
{
	const struct lull_unit *unit =
		&p->subject->units.at[((const struct lull_replay_op *)p->ops.at)[op].unit];

	return unit->kind == LULL_UNIT_KERNEL ? unit->what : 0;
}

/* By launch: what its kernels take in the middle; 0 if that is not known. */
static f64 *find_usual(const struct lull_replay *p)
{
	const struct lull_replay_op *ops = p->ops.at;
	size_t n_launches = lull_reader_n_dim(p->subject->reader, LULL_TABLE_launch);
	f64 *usual_ns = lull_alloc(n_launches + 1, sizeof(*usual_ns));
	struct lull_vec runs;
	const struct run *at;

	lull_vec_init(&runs, sizeof(struct run));
	for (u32 i = 0; i < p->ops.n; i++) {
		if (launch_of(p, i))
			*(struct run *)lull_vec_push(&runs) =
				(struct run){ launch_of(p, i), ops[i].dur_ns };
	}
	at = runs.at;
	if (runs.n)
		lull_sort(runs.at, runs.n, sizeof(*at), by_launch);
	for (size_t i = 0, end; i < runs.n; i = end) {
		for (end = i; end < runs.n && at[end].launch == at[i].launch; end++)
			;
		usual_ns[at[i].launch] = end - i >= LEAST_RUNS ? at[(i + end) / 2].dur_ns : 0;
	}
	lull_vec_release(&runs);
	return usual_ns;
}

/* Kernels that take far longer than the same ones do otherwise: the device waits for pages. */
struct waiting {
	f64 n, ns; /* of a step; what they take more */
};

/* Find them, and give those in `ops`, if there are any, the time that is usual. */
static struct waiting find_waiting(const struct lull_replay *p, struct lull_replay_op *ops)
{
	const struct lull_replay_op *all = p->ops.at;
	f64 *usual_ns = find_usual(p);
	struct waiting found = { 0 };

	for (u32 i = 0; i < p->ops.n; i++) {
		f64 usual = usual_ns[launch_of(p, i)];

		if (usual <= 0 || all[i].dur_ns < LULL_T(page_wait) * usual)
			continue;
		found.n += 1.0 / p->n_rounds;
		found.ns += (all[i].dur_ns - usual) / p->n_rounds;
		if (ops && ops[i].dur_ns > usual)
			ops[i].dur_ns = usual;
	}
	free(usual_ns);
	return found;
}

/* Prefetched, pages move beside the kernels. */
static void apply(struct lull_what_if *w)
{
	find_waiting(w->replay, w->ops);
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_unified_memory);
		if (w->nodes[i].flags & LULL_NODE_MANAGED)
			lull_what_if_remove(w, i);
	}
}

static const char *table(const struct lull_subject *s)
{
	(void)s;
	return "memcpy";
}

/* Pages move for much of a busy device's step. */
static f64 busy(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;

	if ((f64)s->moved_ns < LULL_T(moving) * (f64)s->window_ns)
		return 0;
	return (f64)s->moved_ns / lull_why_n_steps(why);
}

/* Where the host is what touches the pages, most of it is better done by a kernel. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	const struct lull_subject *s = why->lead;
	const struct lull_slice *at = s->slices.at;
	u64 sum_ns = 0;

	(void)is_torch;
	for (size_t i = 0; i < s->slices.n; i++) {
		if (at[i].cause == LULL_CAUSE_IX_unified_memory)
			sum_ns += at[i].to_ns - at[i].from_ns;
	}
	if (sum_ns * 2 <= s->cost_ns[LULL_CAUSE_IX_unified_memory])
		return;
	snprintf(advice->fix, sizeof(advice->fix),
		 "do in a kernel what the host does with this memory, so that its pages stay on "
		 "the device; else cudaMemPrefetchAsync() to the side that uses it next, or "
		 "explicit copies from pinned memory");
}

static void show_waiting(struct lull_finding *f, const struct waiting *waiting)
{
	struct lull_number n = lull_show_count(waiting->n);
	bool is_one = !strcmp(n.text, "1");

	lull_show(f, "kernel", NULL,
		  "%s kernel%s per step take%s %s more than %s otherwise: %s for pages", n.text,
		  is_one ? "" : "s", is_one ? "s" : "", lull_why_time(waiting->ns).text,
		  is_one ? "it does" : "they do", is_one ? "it waits" : "they wait");
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	u64 from_ns = lull_round_begin_ns(&why->lead->rounds, why->lead->rounds.first_steady);
	u64 n = lull_subject_faults(why->lead, from_ns, UINT64_MAX);
	struct waiting waiting = { 0 };

	if (why->has_replay)
		waiting = find_waiting(&why->replay, NULL);
	if (waiting.ns >= LULL_T(line_share) * why->step_ns)
		show_waiting(f, &waiting);
	if (n)
		lull_show(f, "um_event", NULL, "%.0f page faults of the host per step",
			  (f64)n / lull_why_n_steps(why));
	if (why->lead->moved_ns)
		lull_show(f, "um_event", NULL, "pages of managed memory move for %s of each step",
			  lull_why_time((f64)why->lead->moved_ns / lull_why_n_steps(why)).text);
}

const struct lull_cause lull_cause_unified_memory = {
	.id = "unified-memory",
	.title = "pages of managed memory move while nothing computes",
	.because = "pages of managed memory move between host and device",
	.why = "Memory from cudaMallocManaged moves page by page when the host or the device "
	       "accesses it. Time counts in which such a move runs and no kernel does, and gaps "
	       "in which moves, and faults of the host at 20 us each, fill at least half, or most "
	       "native samples are in the driver's code for such faults. Page "
	       "faults that stall a running kernel make that kernel longer: where it takes at "
	       "least twice what the same one takes in the middle of 8 and more, the prediction "
	       "gives it that time.",
	.fix = "cudaMemPrefetchAsync() before the kernels that use it, or explicit copies from "
	       "pinned memory",
	.assumes =
		"all pages have moved before they are needed; kernels that always wait for pages "
		"get shorter, too, which is not counted",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_COPY,
	.needs = LULL_NEED_WORK,
	.claims_at = LULL_AT(COPY) | LULL_AT(GAP) | LULL_AT(LATENCY) | LULL_AT(DEVICE),
	.claim = claim,
	.apply = apply,
	.busy = busy,
	.table = table,
	.prove = prove,
	.suit = suit,
};
