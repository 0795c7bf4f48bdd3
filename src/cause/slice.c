/*
 * slice - what the thread did in each long gap, cut into parts with one cause each.
 *
 * A part is what the thread of the call behind the gap did; where that has nothing, what the thread
 * of the call before it did: the one hands over to the other. Waits for a lock or a CPU come first,
 * since they lie across ranges and operators.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/gaps.h"
#include "cause/place.h"
#include "cause/subject.h"

/*
 * The program's own time in a gap counts from here: the optimizer's and the step's own Python takes
 * up to 250 us in pieces that were recorded, and up to 1.2 ms where nothing was.
 */
#define OWN_SEEN_NS   300000u
#define OWN_UNSEEN_NS 800000u
/* Handing over to another thread takes 150 to 470 us. */
#define HAND_OVER_NS 500000u

/* A part of a gap before anybody claimed it. */
struct part {
	u64 from_ns, to_ns;
	u32 event;
	u32 inside;
	u32 stack;
	u8 pause;
	bool is_seen;
};

struct slicer {
	struct lull_subject *s;
	const struct lull_gap_place *place;
	struct lull_vec parts; /* struct part of the gap at hand */
};

/* Bits of what most samples at this place say. */
static u32 sampled_bits(const struct lull_gap_place *p)
{
	u32 bits = 0;

	if (p->n_loader * 2 > p->n_samples)
		bits |= LULL_IN_LOADER;
	else if (p->n_storage * 2 > p->n_samples)
		bits |= LULL_IN_STORAGE;
	if (p->n_framework * 2 > p->n_samples)
		bits |= LULL_IN_FRAMEWORK;
	return bits;
}

/* When the thread's innermost event changes next. */
static u64 leaf_end_ns(const struct lull_host *h, u32 lane, u64 at_ns, u32 *event)
{
	const struct lull_leaf *leaves = h->leaves.at;
	u32 leaf = lull_host_leaf(h, lane, at_ns);
	size_t next = leaf == LULL_NONE ? 0 : (size_t)leaf + 1;

	*event = leaf == LULL_NONE ? LULL_NONE : leaves[leaf].event;
	if (leaf == LULL_NONE) {
		/* The lane's first leaf may lie ahead. */
		while (next < h->leaves.n && leaves[next].lane < lane)
			next++;
	}
	return next < h->leaves.n && leaves[next].lane == lane ? leaves[next].begin_ns : UINT64_MAX;
}

/* A step's own range says only that the loop runs. */
static bool says_nothing(const struct lull_host *h, u32 event)
{
	const struct lull_host_event *e;

	if (event == LULL_NONE)
		return true;
	e = lull_vec_get(&h->events, event);
	return e->kind == LULL_HOST_RANGE && !(e->inside & ~(u32)LULL_IN_PHASE);
}

/* The pause of the thread at this moment or ahead: returns its begin, UINT64_MAX if none. */
static u64 pause_ahead(const struct lull_host *h, u32 lane, u64 at_ns,
		       const struct lull_host_pause **pause)
{
	const struct lull_host_pause *at = h->pauses.at;
	size_t i = lull_host_pause_at(h, lane, at_ns);

	while (i < h->pauses.n && at[i].lane == lane && at[i].end_ns <= at_ns)
		i++;
	*pause = i < h->pauses.n && at[i].lane == lane ? &at[i] : NULL;
	return *pause ? (*pause)->begin_ns : UINT64_MAX;
}

/* One part, from at_ns on; returns where it ends. */
static u64 next_part(struct slicer *sl, const u32 lanes[2], u64 at_ns, u64 to_ns)
{
	const struct lull_host *h = &sl->s->host;
	const struct lull_host_event *events = h->events.at;
	const struct lull_host_pause *pause;
	struct part p = { .from_ns = at_ns, .pause = LULL_NO_PAUSE };
	u64 ahead_ns = pause_ahead(h, lanes[0], at_ns, &pause), end_ns, other_ns;
	u32 other;

	end_ns = leaf_end_ns(h, lanes[0], at_ns, &p.event);
	if (says_nothing(h, p.event) && lanes[1] != lanes[0]) {
		other_ns = leaf_end_ns(h, lanes[1], at_ns, &other);
		if (other != LULL_NONE) {
			p.event = other;
			end_ns = other_ns < end_ns ? other_ns : end_ns;
		}
	}
	if (pause && ahead_ns <= at_ns) {
		p.pause = pause->kind;
		p.stack = pause->stack;
		end_ns = pause->end_ns < end_ns ? pause->end_ns : end_ns;
	} else if (ahead_ns < end_ns) {
		end_ns = ahead_ns;
	}
	p.is_seen = !says_nothing(h, p.event) || p.pause != LULL_NO_PAUSE;
	p.inside = p.event == LULL_NONE ? 0 : events[p.event].inside;
	if (p.pause == LULL_HOST_BLOCKED)
		p.inside |= LULL_IN_WAIT;
	if (!p.is_seen && sl->place->n_samples) {
		p.is_seen = true;
		p.inside |= sampled_bits(sl->place);
		p.stack = sl->place->stack;
	}
	p.to_ns = end_ns < to_ns ? end_ns : to_ns;
	*(struct part *)lull_vec_push(&sl->parts) = p;
	return p.to_ns;
}

/* Time that could be the program's own: not loading, writing, pausing or framework code. */
static bool could_be_own(const struct part *p)
{
	return !(p->inside & (LULL_IN_LOADER | LULL_IN_STORAGE | LULL_IN_WRITE | LULL_IN_CALLS |
			      LULL_IN_FRAMEWORK)) &&
	       (p->pause == LULL_NO_PAUSE || p->pause == LULL_HOST_BLOCKED);
}

/* Whether the gap holds enough of the program's own time to speak of. */
static bool has_own(const struct slicer *sl, const struct lull_gap *gap, bool is_hand_over)
{
	const struct part *parts = sl->parts.at;
	u64 seen_ns = 0, unseen_ns = 0, all_ns;

	for (size_t i = 0; i < sl->parts.n; i++) {
		if (could_be_own(&parts[i]))
			*(parts[i].is_seen ? &seen_ns : &unseen_ns) +=
				parts[i].to_ns - parts[i].from_ns;
	}
	all_ns = seen_ns + unseen_ns;
	if (is_hand_over)
		all_ns = all_ns > HAND_OVER_NS ? all_ns - HAND_OVER_NS : 0;
	return gap->gap_ns >= LULL_GAP_LONG_NS &&
	       all_ns >= (unseen_ns >= seen_ns ? OWN_UNSEEN_NS : OWN_SEEN_NS);
}

static u8 blind_of(const struct lull_claim *c)
{
	return c->stall ? LULL_BLIND_STALL : LULL_BLIND_UNRECORDED;
}

/* Claim a part and append it, to the last slice if that has the same cause and place. */
static void put(struct lull_subject *s, struct lull_claim *c, u32 stack)
{
	enum lull_cause_ix cause = lull_cause_of(c);
	struct lull_slice *last =
		s->slices.n ? lull_vec_get(&s->slices, s->slices.n - 1) : NULL;

	if (c->from_ns == c->to_ns)
		return;
	if (last && last->node == c->node && last->cause == cause && last->to_ns == c->from_ns &&
	    last->is_seen == c->is_seen) {
		last->to_ns = c->to_ns;
		return;
	}
	if (s->chain.nodes[c->node].slice == LULL_NONE)
		s->chain.nodes[c->node].slice = (u32)s->slices.n;
	*(struct lull_slice *)lull_vec_push(&s->slices) =
		(struct lull_slice){ .from_ns = c->from_ns,
				     .to_ns = c->to_ns,
				     .node = c->node,
				     .event = c->event,
				     .stack = stack,
				     .cause = (u8)cause,
				     .blind = blind_of(c),
				     .is_seen = c->is_seen };
}

/* Each part gives the stall its share; the last one what rounding left. */
static void claim_parts(struct slicer *sl, const struct lull_gap *gap, bool is_hand_over)
{
	struct lull_subject *s = sl->s;
	const struct part *parts = sl->parts.at;
	bool is_own = has_own(sl, gap, is_hand_over);
	u64 stall_left_ns = gap->stall_ns;

	for (size_t i = 0; i < sl->parts.n; i++) {
		const struct part *p = &parts[i];
		u64 len_ns = p->to_ns - p->from_ns;
		u64 stall_ns = (u64)((f64)gap->stall_ns / (f64)gap->gap_ns * (f64)len_ns);
		struct lull_claim c = {
			.subject = s,
			.place = LULL_PLACE_GAP,
			.unit = LULL_NONE,
			.node = gap->node,
			.event = p->event,
			.inside = p->inside,
			.gap_ns = gap->gap_ns,
			.pause = p->pause,
			.is_own = is_own && could_be_own(p),
			.is_seen = p->is_seen,
			.recurs = sl->place->n > 1,
		};

		if (i + 1 == sl->parts.n)
			stall_ns = stall_left_ns < len_ns ? stall_left_ns : len_ns;
		stall_left_ns -= stall_ns;
		c.from_ns = p->from_ns;
		c.to_ns = p->from_ns + stall_ns;
		c.stall = s->stalls.kind;
		put(s, &c, p->stack);
		c.from_ns = c.to_ns;
		c.to_ns = p->to_ns;
		c.stall = LULL_STALL_NONE;
		put(s, &c, p->stack);
	}
}

static void slice_gap(struct slicer *sl, const struct lull_gap *gap)
{
	const struct lull_chain *chain = &sl->s->chain;
	const struct lull_node *node = &chain->nodes[gap->node];
	bool is_first = node->flags & LULL_NODE_FIRST;
	u32 lanes[2] = { node->lane, is_first ? node->lane : node[-1].lane };
	u64 at_ns = node->begin_ns - gap->gap_ns;

	sl->parts.n = 0;
	while (at_ns < node->begin_ns)
		at_ns = next_part(sl, lanes, at_ns, node->begin_ns);
	claim_parts(sl, gap, lanes[0] != lanes[1]);
}

void lull_subject_slice(struct lull_subject *s)
{
	struct slicer sl = { .s = s };
	const struct lull_gap *gap;
	struct lull_gaps gaps;

	lull_gaps_init(&gaps, s);
	lull_vec_init(&sl.parts, sizeof(struct part));
	gap = gaps.all.at;
	for (size_t i = 0; i < gaps.all.n; i++, gap++) {
		struct lull_node *node = &s->chain.nodes[gap->node];

		sl.place = lull_vec_get(&gaps.places, gap->place);
		if (gap->gap_ns >= LULL_GAP_LONG_NS)
			slice_gap(&sl, gap);
		if (gap->call_stall_ns)
			node->cause = s->stalls.kind == LULL_STALL_OS ? LULL_CAUSE_IX_os_scheduling
								      : LULL_CAUSE_IX_unknown;
	}
	lull_vec_release(&sl.parts);
	lull_gaps_release(&gaps);
}
