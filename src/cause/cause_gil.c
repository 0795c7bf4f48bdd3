/*
 * gil: the launching thread waits for Python's interpreter lock.
 *
 * Signal:  a recorded wait for the lock in a gap; without such records, gaps that are now and then
 *          far longer than at the same place in other steps, while CUDA calls never are.
 * Not it:  gaps that are long in every step (unless by a switch interval, 5 ms); stalls that also
 *          strike inside calls (os-scheduling); a wait while the device has work.
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"

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

static void apply(struct lull_what_if *w)
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

static void prove(struct lull_why *why, struct lull_finding *f)
{
	lull_show_stalls(why, f);
	add_holder(why, f);
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
	       "the lock, too.",
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
	.apply = apply,
	.table = table,
	.trust = trust,
	.prove = prove,
};
