/*
 * gil: the launching thread waits for Python's interpreter lock.
 *
 * Signal:  a recorded wait for the lock in a gap; without such records, gaps that are now and then
 *          far longer than at the same place in other steps, while CUDA calls never are.
 * Not it:  gaps that are long in every step (unless by a switch interval, 5 ms); stalls that also
 *          strike inside calls (os-scheduling); a wait while the device has work.
 * The fix: other processes run that Python. If steps need what it makes, it takes as many as a
 *          loader does (cause/workers.h).
 */
#include <math.h>
#include <stdio.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "cause/workers.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_GAP &&
	       (c->pause == LULL_HOST_GIL || c->stall == LULL_STALL_GIL);
}

/*
 * Waits for another thread before a node that are not for the lock: that thread needs the lock,
 * too, and gets it sooner.
 */
static f64 waits_ns(const struct lull_subject *s, u32 node)
{
	const struct lull_slice *at = s->slices.at;
	const struct lull_host_event *events = s->host.events.at;
	f64 sum = 0;

	for (size_t i = s->chain.nodes[node].slice;
	     i != LULL_NONE && i < s->slices.n && at[i].node == node; i++) {
		if (at[i].cause != LULL_CAUSE_IX_gil && at[i].event != LULL_NONE &&
		    (events[at[i].event].inside & LULL_IN_WAIT))
			sum += (f64)(at[i].to_ns - at[i].from_ns);
	}
	return sum;
}

static void take_out(struct lull_what_if *w)
{
	const struct lull_subject *s = w->replay->subject;
	f64 share = s->window_ns ? (f64)s->cost_ns[LULL_CAUSE_IX_gil] / (f64)s->window_ns : 0;

	for (u32 i = 0; i < w->n; i++) {
		struct lull_replay_node *n = &w->nodes[i];

		if (s->host.has_gil)
			n->gap_ns -= share * waits_ns(s, n->node);
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_gil);
		n->gap_ns -= n->gil_ns + n->cold_gap_ns;
		n->gap_ns = n->gap_ns > 0 ? n->gap_ns : 0;
		n->call_ns -= n->cold_call_ns;
	}
}

/* What a step takes without the waits, whoever does the other threads' work. */
static f64 rest_ns(const struct lull_replay *p)
{
	struct lull_what_if w;
	f64 ns;

	lull_what_if_init(&w, p, 0);
	take_out(&w);
	lull_what_if_warm(&w);
	ns = lull_what_if_run(&w);
	lull_what_if_release(&w);
	return ns;
}

/* The processes that do what other threads do for the steps; no work if none does any. */
static struct lull_workers find_workers(const struct lull_replay *p)
{
	const struct lull_subject *s = p->subject;
	const struct lull_handover *h = &s->handover;
	u64 ns = h->shared_ns ? h->shared_ns : h->other_ns;

	if (!ns)
		return (struct lull_workers){ .work_ns = 0 };
	return lull_workers_for(s, (f64)ns / lull_rounds_n_steady(&s->rounds), rest_ns(p), true);
}

static void apply(struct lull_what_if *w)
{
	const struct lull_handover *h = &w->replay->subject->handover;
	struct lull_workers workers = find_workers(w->replay);

	take_out(w);
	if (!workers.work_ns || (w->scenario <= 0 && lull_workers_are_few(&workers, w->replay)))
		return;
	/* In the worst case the steps need what other threads do, though none was seen to wait. */
	if (!h->shared_ns && w->scenario <= 0)
		return;
	w->floor_ns = lull_workers_step_ns(&workers, w->scenario);
}

/* Work that the steps need, and as many processes as there are CPUs for do not keep up. */
static void advise_less(const struct lull_why *why, const struct lull_workers *w,
			struct lull_advice *advice)
{
	u32 n = lull_workers_n(w);

	snprintf(advice->fix, sizeof(advice->fix),
		 "make the other thread's work cheaper, with array operations or in code that "
		 "releases the lock: %u process%s for it would leave a step of %s",
		 n, n == 1 ? "" : "es",
		 lull_why_time(fmin(lull_workers_step_ns(w, 0), why->replay.free_ns)).text);
	snprintf(advice->assumes, sizeof(advice->assumes),
		 "the other thread's work then takes less than the rest of the step");
}

/* What to do, by the processes it takes. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	const struct lull_handover *h = &why->lead->handover;
	struct lull_workers w;
	char with[80] = "";
	u32 n;

	if (!why->has_replay)
		return;
	w = find_workers(&why->replay);
	if (!w.work_ns)
		return;
	if (!h->shared_ns) {
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "the other thread no longer runs Python, and that no step waits for what "
			 "it does");
		return;
	}
	if (lull_workers_are_few(&w, &why->replay)) {
		advise_less(why, &w, advice);
		return;
	}
	n = lull_workers_n(&w);
	if (h->way == LULL_HANDOVER_POOL)
		snprintf(with, sizeof(with), "; a ProcessPoolExecutor(%u) instead of the pool", n);
	else if (h->way != LULL_HANDOVER_TAKES && is_torch)
		snprintf(with, sizeof(with), "; DataLoader(num_workers=%u) if it prepares batches",
			 n);
	snprintf(advice->fix, sizeof(advice->fix),
		 "move the Python work of the other thread%s to %u process%s (multiprocessing%s), "
		 "or to code that releases the lock",
		 h->n_lanes == 1 ? "" : "s", n, n == 1 ? "" : "es", with);
	if (n > 1)
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "the work can be divided among the %u processes, and each has a CPU to "
			 "itself",
			 n);
	else
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "the process has a CPU to itself");
}

static const char *table(const struct lull_subject *s)
{
	return s->host.has_gil ? "gil_wait" : NULL;
}

/* Stalls that were taken for waits are as sure as the odds that chance spared the calls. */
static f64 trust(const struct lull_subject *s)
{
	return s->stalls.kind == LULL_STALL_GIL ? s->stalls.confidence : 1;
}

/* Another thread of the process that was seen with the interpreter lock, and where. */
static void add_holder(struct lull_why *why, struct lull_finding *f)
{
	struct lull_subject *s = why->lead;
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	u32 best = 0, n_best = 0, stack = 0;
	struct lull_pysample_cols cols;
	struct lull_cursor c;
	struct lull_location at;
	char place[160];

	/* The majority of samples that hold the lock elsewhere. */
	lull_cursor_init(&c, s->reader, LULL_TABLE_pysample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];

			if (!cols.has_gil[i] || !lane || s->chain.chain_of_lane[lane] ||
			    lanes[lane - 1].process != s->process)
				continue;
			if (lane == best || !n_best) {
				best = lane;
				stack = cols.stack[i];
				n_best++;
			} else {
				n_best--;
			}
		}
	}
	lull_cursor_release(&c);
	if (!best)
		return;
	at = lull_location_find(s, LULL_NONE, stack);
	lull_location_format(&at, place, sizeof(place));
	lull_show(f, "pysample", NULL, "thread %s holds the lock, in %s",
		  lull_reader_string(s->reader, lanes[best - 1].name, NULL),
		  *place ? place : "code without a name");
}

/* How much the threads do that hand over, and what shows that they do. */
static void add_handover(struct lull_why *why, struct lull_finding *f)
{
	static const char *const waits[] = {
		[LULL_HANDOVER_NONE] = "",
		[LULL_HANDOVER_GIVES] = "waits now and then until what it made is taken",
		[LULL_HANDOVER_TAKES] = "waits now and then for something to do",
		[LULL_HANDOVER_POOL] = "waits now and then for something to do, in a pool",
		[LULL_HANDOVER_ASKED] = "the launching thread waits now and then for it",
	};
	const struct lull_handover *h = &why->lead->handover;
	struct lull_number ran = lull_why_time((f64)h->shared_ns / lull_why_n_steps(why));
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(why->reader, LULL_TABLE_lane, &n);
	const char *name;

	if (!h->lane)
		return;
	name = lull_reader_string(why->reader, lanes[h->lane - 1].name, NULL);
	if (h->n_lanes > 1)
		lull_show(f, "pysample", NULL,
			  "%u other threads together run for %s of each step; one, %s, %s",
			  h->n_lanes, ran.text, name, waits[h->way]);
	else
		lull_show(f, "pysample", NULL, "thread %s runs for %s of each step, and %s", name,
			  ran.text, waits[h->way]);
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	lull_show_stalls(why, f);
	add_holder(why, f);
	add_handover(why, f);
}

const struct lull_cause lull_cause_gil = {
	.id = "gil",
	.title = "the launching thread waits for Python's interpreter lock",
	.because = "the launching thread waits for Python's interpreter lock, which another "
		   "thread holds",
	.why = "Only one thread runs Python at a time. Another thread gets the lock after up to "
	       "5 ms, or when the holder blocks. Lull's own recordings contain each wait. "
	       "Imported traces do not. There, a gap of at least 400 us that is 8 times as long "
	       "as the gap at the same place in other steps is a stall. CUDA calls do not need "
	       "the lock, so stalls that occur only outside of CUDA calls are taken for waits "
	       "for the lock; the confidence is lower the likelier this is by chance. Five or "
	       "more gaps of 4.9 to 6.0 ms in each step are taken for such waits, too. The "
	       "prediction removes the waits, and the extra time of calls within 400 us after a "
	       "wait, compared with the same place in other steps. Waits for other threads get "
	       "shorter by the share of the step that waits for the lock take: those threads need "
	       "the lock, too. Samples of Python may find the other thread in waits to hand its "
	       "work over (a full or an empty queue, a pool of threads), or the launching thread "
	       "in waits for it. Then somebody has to do that work for each step, and n processes "
	       "do it in 1 / n of the time, each 0.7 times as fast. The prediction takes as many "
	       "as keep up with the rest of the step, but fewer than the machine has CPUs. Where "
	       "those would gain next to nothing, it takes the work as made cheaper, and how long "
	       "they would take is the upper end of the range; so it is where nobody was seen in "
	       "such a wait, since the steps may need the work all the same.",
	.fix = "move the other thread's Python work to a separate process, or to code that "
	       "releases the lock",
	.assumes = "the other thread no longer runs Python",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "waits between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_GIL,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.suit = suit,
	.apply = apply,
	.table = table,
	.trust = trust,
	.prove = prove,
};
