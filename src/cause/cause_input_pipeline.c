/*
 * input-pipeline: the launching thread loads data, or waits for the thread or process that does.
 *
 * Signal:  in a gap of at least 150 us the thread is inside a range or function that loads; or the
 *          program's own time in the gap leads to a copy of at least 4 KiB to the device, and no
 *          range of another name covers it: the program prepared the batch there.
 * Not it:  code in a range with another name, although a copy follows it; work on a result that the
 *          device just gave, such as an environment that acts; gaps shorter than 150 us;
 *          loading while the device has work queued.
 */
#include <math.h>
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/gaps.h"
#include "cause/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	if (c->place != LULL_PLACE_GAP || c->gap_ns < LULL_TN(gap_long_ns))
		return false;
	if (c->inside & LULL_IN_LOADER)
		return true;
	return c->is_own && !(c->inside & LULL_IN_NAMED) && c->leads_in && !c->answers;
}

/* CPUs that are left for workers: the thread needs one, too. 0 if not known. */
static u32 spare_cpus(const struct lull_subject *s)
{
	return s->n_cpus > 1 ? s->n_cpus - 1 : s->n_cpus;
}

/* All loading of the steady steps, also while the device has work. */
static f64 loading_ns(const struct lull_subject *s)
{
	const struct lull_slice *at = s->slices.at;
	f64 sum = 0;

	for (size_t i = 0; i < s->slices.n; i++) {
		u32 round = s->chain.nodes[at[i].node].round;

		if (at[i].cause == LULL_CAUSE_IX_input_pipeline && round != LULL_NONE &&
		    round >= s->rounds.first_steady)
			sum += (f64)(at[i].to_ns - at[i].from_ns);
	}
	return sum;
}

/*
 * Workers that load a batch in the time which the rest of a step takes, as far as there are CPUs:
 * more bring nothing.
 */
static u32 workers(const struct lull_subject *s)
{
	f64 rest_ns = (f64)(s->window_ns - s->cost_ns[LULL_CAUSE_IX_input_pipeline]);
	f64 n = ceil(loading_ns(s) / (fmax(rest_ns, 1) * LULL_T(worker)));

	n = fmin(n, spare_cpus(s) ? spare_cpus(s) : UINT16_MAX);
	return (u32)fmax(n, 1);
}

static void suit(const struct lull_subject *s, bool is_torch, struct lull_advice *advice)
{
	u32 n = workers(s);

	if (is_torch && spare_cpus(s))
		snprintf(advice->fix, sizeof(advice->fix),
			 "DataLoader(num_workers=%u, pin_memory=True) and .to(device, "
			 "non_blocking=True)",
			 n);
	if (n > 1)
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "each of the %u workers has a CPU to itself", n);
}

static void apply(struct lull_what_if *w)
{
	f64 all_ns = 0, worth = w->scenario < 0	  ? LULL_T(worker_good)
				: w->scenario > 0 ? LULL_T(worker_poor)
						  : LULL_T(worker);

	for (u32 i = 0; i < w->n; i++) {
		all_ns += lull_what_if_slices_ns(w, i, LULL_CAUSE_IX_input_pipeline);
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_input_pipeline);
		if ((w->nodes[i].flags & LULL_NODE_PAGED) && !(w->nodes[i].flags & LULL_NODE_OUT))
			lull_what_if_pin(w, i);
		if (w->nodes[i].flags & LULL_NODE_OWNED)
			lull_what_if_remove(w, i);
	}
	/* The workers have to keep up. Recording slowed them as it did the thread. */
	all_ns *= w->is_raw ? 1 : w->replay->host_part;
	w->floor_ns = all_ns / w->replay->n_rounds / (workers(w->replay->subject) * worth);
}

/* Child processes that run in the steady steps; each exec of one is a row of its own. */
static u32 count_children(const struct lull_why *why, const struct lull_process_row *own)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	u64 from_ns = lull_round_begin_ns(&why->lead->rounds, why->lead->rounds.first_steady);
	u32 n_children = 0;

	for (size_t i = 0; i < n; i++)
		n_children += all[i].parent_pid == own->pid && &all[i] != own &&
			      (!all[i].end_ns || all[i].end_ns > from_ns);
	return n_children;
}

/* Who loads instead, or that nobody does. */
static void prove(struct lull_why *why, struct lull_finding *f)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	const struct lull_process_row *own = &processes[why->lead->process - 1];
	bool waits = lull_finding_waits(why, f);
	u32 n_children = count_children(why, own);

	if (!own->has_agent)
		return;
	if (waits)
		snprintf(f->advice.fix, sizeof(f->advice.fix), "%s",
			 lull_causes[f->cause]->fix_more);
	if (waits && lull_show_producer(why, f))
		return;
	if (n_children)
		lull_show(f, "process", NULL, "%u child process%s not keep up", n_children,
			  n_children == 1 ? "; if it loads data, it does"
					  : "es; those that load data do");
	else if (!waits)
		lull_show(f, "process", NULL, "the program has no other process to load data");
}

const struct lull_cause lull_cause_input_pipeline = {
	.id = "input-pipeline",
	.title = "the launching thread loads data, or waits for it",
	.because = "the launching thread prepares the batch itself or waits for it",
	.why = "A loader in the launching thread (num_workers=0), or workers that cannot keep up, "
	       "leave the device idle at the start of each step. Counted: gaps of at least 150 "
	       "us in which the thread is inside a range or function with a name of loading "
	       "(dataloader, collate, decode, __getitem__, ...), or in which its own work leads "
	       "to a copy of at least 4 KiB to the device outside of any range with another "
	       "name, unless it starts from a result of at least 64 bytes that the device just "
	       "gave. The prediction moves loading to other processes and pins its copies. It "
	       "uses as many workers as it takes to keep up with the rest of the step, each 0.7 "
	       "times as fast as the thread, but fewer than the machine has CPUs.",
	.fix = "prepare the next batch in another thread or process, in pinned memory, while the "
	       "device computes, and copy it with cudaMemcpyAsync()",
	.fix_torch = "a DataLoader with workers (num_workers) and pin_memory=True, and "
		     ".to(device, non_blocking=True)",
	.fix_more = "let more threads or processes prepare batches (with a DataLoader: "
		    "num_workers), or make each item cheaper: decode less, cache, read from "
		    "faster storage",
	.assumes = "one worker has a CPU to itself",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_DATA,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.suit = suit,
	.apply = apply,
	.prove = prove,
};
