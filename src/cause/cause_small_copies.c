/*
 * small-copies: many small copies to the device in each step.
 *
 * Signal:  at least 16 copies of less than 64 KiB to the device in a step; their time on the device
 *          with nothing else, and the device's idle time in their calls and between them. A small
 *          copy to the host between two of them is one of them: values go there and back.
 * Not it:  a few flags and numbers; large copies (pageable-copy, exposed-copy).
 */
#include "base/convert.h"
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/marks.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	switch (c->place) {
	case LULL_PLACE_COPY:
	case LULL_PLACE_CALL:
	case LULL_PLACE_LATENCY:
		return (c->marks & LULL_MARK_SMALL) && !c->stall && c->pause == LULL_NO_PAUSE;
	case LULL_PLACE_GAP:
		return (c->marks & LULL_MARK_SMALL_GAP) && c->gap_ns < LULL_TN(gap_long_ns);
	default:
		return false;
	}
}

/* Of each step, one copy in each direction is left, with the bytes of all. */
static void apply(struct lull_what_if *w)
{
	const struct lull_subject *s = w->replay->subject;
	/* In Python, what lies between is the way to the call; else values are made there. */
	bool is_python = lull_subject_is_python(s);
	u32 kept[2] = { LULL_NONE, LULL_NONE };

	for (u32 i = 0; i < w->n; i++) {
		struct lull_replay_node *n = &w->nodes[i];
		u8 marks = s->marks[n->node], out = !!(n->flags & LULL_NODE_OUT);
		f64 speed = w->replay->link[out ? LULL_COPY_OUT : LULL_COPY_IN];

		if (n->starts)
			kept[0] = kept[1] = LULL_NONE;
		if (is_python && (marks & LULL_MARK_SMALL_GAP) &&
		    s->chain.nodes[n->node].slice == LULL_NONE)
			n->gap_ns = 0;
		if (!(marks & LULL_MARK_SMALL))
			continue;
		if (kept[out] == LULL_NONE) {
			kept[out] = i;
			continue;
		}
		if (n->n_ops && w->nodes[kept[out]].n_ops && speed > 0)
			w->ops[w->nodes[kept[out]].op].dur_ns +=
				(f64)lull_units_copy(&s->units, &s->units.at[w->ops[n->op].unit])
					->size_bytes /
				speed * 1e9;
		lull_what_if_remove(w, i);
	}
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	u64 n = 0, bytes = 0;

	for (u32 i = 0; i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];

		if (!(s->marks[i] & LULL_MARK_SMALL) || node->unit == LULL_NONE ||
		    node->flags & LULL_NODE_OUT || node->round == LULL_NONE ||
		    node->round < s->rounds.first_steady)
			continue;
		n++;
		bytes += lull_units_copy(&s->units, &s->units.at[node->unit])->size_bytes;
	}
	if (n)
		lull_show(f, "memcpy", NULL, "%.0f copies to the device per step, %.0f bytes each",
			  (f64)n / lull_why_n_steps(why), (f64)bytes / (f64)n);
}

const struct lull_cause lull_cause_small_copies = {
	.id = "small-copies",
	.title = "many small copies to the device",
	.because = "many small copies to the device follow each other",
	.why = "A copy takes the host 5 to 10 us, however small it is, and from ordinary memory it "
	       "waits as well. Where a step has at least 16 copies of less than 64 KiB to the "
	       "device, counted are the time in which such a copy runs alone, and the device's "
	       "idle time in their calls and in gaps below 150 us between two of them; a small "
	       "copy "
	       "to the host between two of them is counted, too. The prediction is one copy per "
	       "step and direction with the bytes of all.",
	.fix = "put the values into one buffer and copy it once, or compute them on the device",
	.fix_torch = "stack the values into one tensor and copy it once, or create them with "
		     "device=\"cuda\"",
	.assumes = "all values are known when the first one is copied",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "between the copies",
	.family = LULL_FAMILY_COPY,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(COPY) | LULL_AT(CALL) | LULL_AT(GAP) | LULL_AT(LATENCY),
	.claim = claim,
	.apply = apply,
	.prove = prove,
};
