/*
 * slice - what the thread did in each long gap, cut into parts with one cause each.
 *
 * A part is what the thread of the call after the gap did; if that thread did nothing, what the
 * thread of the call before the gap did: one hands over to the other. If that one waits, it waits
 * for its turn and says nothing about the thread that works. Waits for a lock or a CPU come first,
 * since they are independent of ranges and operators. A server may make a thread for each request:
 * while the next one does not exist yet, and the last one has ended, there is no request.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "cause/cause.h"
#include "cause/gaps.h"
#include "cause/location.h"
#include "cause/marks.h"
#include "cause/subject.h"
#include "cause/thresholds.h"
#include "model/thread/call_names.h"
#include "model/thread/doing.h"

/* A step may have millions of calls; data that came out so much earlier is for something else. */
#define MAX_BACK 4096

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
	const struct lull_lane_row *lanes;
	size_t n_lanes;
};

/* A step's own range says only that the loop runs. */
static bool says_nothing(const struct lull_host *h, u32 event)
{
	const struct lull_host_event *e;

	if (event == LULL_NONE)
		return true;
	e = lull_vec_get(&h->events, event);
	return e->kind == LULL_HOST_RANGE && !(e->inside & ~(u32)LULL_IN_PHASE);
}

/* It waits for another thread: that one knows more. */
static bool is_waiting(const struct lull_host *h, u32 event)
{
	return ((const struct lull_host_event *)h->events.at)[event].inside & LULL_IN_QUEUE;
}

/* The pause of the thread at this moment or ahead: returns its start, UINT64_MAX if none. */
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

/*
 * The same for two threads that take turns. While the one of the next call waits for its work, the
 * one that will give it counts, if that one runs. until_ns: how long this answer holds.
 */
static u64 pause_of_either(const struct lull_host *h, const u32 lanes[2], u64 at_ns,
			   const struct lull_host_pause **pause, u64 *until_ns)
{
	u64 ahead_ns = pause_ahead(h, lanes[0], at_ns, pause), others_ns;
	const struct lull_host_pause *others;

	*until_ns = UINT64_MAX;
	if (lanes[0] == lanes[1] || !*pause || ahead_ns > at_ns ||
	    (*pause)->kind != LULL_HOST_BLOCKED)
		return ahead_ns;
	others_ns = pause_ahead(h, lanes[1], at_ns, &others);
	if (others && others_ns <= at_ns) {
		*until_ns = others->end_ns;
		return ahead_ns;
	}
	*until_ns = (*pause)->end_ns;
	*pause = others;
	return others_ns;
}

/* Whether others are at work in gaps like this one; if nobody can know, they are. */
static bool has_others(const struct slicer *sl)
{
	return !sl->s->others.is_known ||
	       (f64)sl->place->others_ns >= LULL_T(others_work) * (f64)sl->place->gap_ns;
}

/*
 * It waits for another thread that launches: that one made the call before, or runs meanwhile. One
 * hands over to the other, which is the framework's affair.
 */
static bool is_handed_over(const struct lull_subject *s, const u32 lanes[2], const struct part *p)
{
	if (!(p->inside & LULL_IN_QUEUE))
		return false;
	/* Threads of a server take turns, too, but wait for requests. */
	return (lanes[0] != lanes[1] && !s->host.is_server) ||
	       (f64)lull_others_ns(&s->launching, p->from_ns, p->to_ns) >=
		       LULL_T(others_work) * (f64)(p->to_ns - p->from_ns);
}

/* What a call of the C library is made for, by its stack. */
static u32 called_in(const struct slicer *sl, u32 event)
{
	const struct lull_host_event *e = lull_vec_get(&sl->s->host.events, event);

	if (e->kind != LULL_HOST_OSCALL || !e->stack)
		return 0;
	return lull_location_stack_bits(sl->s->reader, e->stack) &
	       (LULL_IN_LOADER | LULL_IN_STORAGE | LULL_IN_COMPILE);
}

/* When the thread begins, 0 if that is not known; when it has ended, UINT64_MAX if it has not. */
static struct lull_span life_of(const struct slicer *sl, u32 lane)
{
	struct lull_span life = { 0, UINT64_MAX };

	if (lane && lane <= sl->n_lanes) {
		life.from_ns = sl->lanes[lane - 1].start_ns;
		if (sl->lanes[lane - 1].end_ns)
			life.to_ns = sl->lanes[lane - 1].end_ns;
	}
	return life;
}

/*
 * The thread of the call after the gap does not exist at this moment. Returns until when what the
 * thread before it does counts; at_ns itself if that one has ended, too.
 */
static u64 unborn_until(const struct slicer *sl, const u32 lanes[2], u64 at_ns)
{
	u64 birth_ns = life_of(sl, lanes[0]).from_ns, end_ns;

	if (!sl->s->host.is_server || birth_ns <= at_ns)
		return UINT64_MAX;
	end_ns = lanes[0] == lanes[1] ? at_ns : life_of(sl, lanes[1]).to_ns;
	if (end_ns < at_ns)
		end_ns = at_ns;
	return end_ns < birth_ns ? end_ns : birth_ns;
}

/* Nobody launches: the server waits for the request that the next thread is made for. */
static u64 add_unasked(struct slicer *sl, u64 at_ns, u64 to_ns)
{
	*(struct part *)lull_vec_push(&sl->parts) = (struct part){
		.from_ns = at_ns,
		.to_ns = to_ns,
		.event = LULL_NONE,
		.inside = LULL_IN_DEMAND | (has_others(sl) ? LULL_IN_OTHERS : 0),
		.pause = LULL_NO_PAUSE,
		.is_seen = true,
	};
	return to_ns;
}

/* One part, from at_ns on; returns where it ends. */
static u64 next_part(struct slicer *sl, const u32 lanes[2], u64 at_ns, u64 to_ns)
{
	const struct lull_host *h = &sl->s->host;
	const struct lull_host_event *events = h->events.at;
	const struct lull_host_pause *pause;
	struct part p = { .from_ns = at_ns, .pause = LULL_NO_PAUSE };
	u64 end_ns, other_ns, ahead_ns = pause_of_either(h, lanes, at_ns, &pause, &end_ns);
	u64 until_ns = unborn_until(sl, lanes, at_ns);
	bool is_silent;
	u32 other;

	if (until_ns == at_ns)
		return add_unasked(sl, at_ns,
				   life_of(sl, lanes[0]).from_ns < to_ns
					   ? life_of(sl, lanes[0]).from_ns
					   : to_ns);
	to_ns = until_ns < to_ns ? until_ns : to_ns;
	p.event = lull_host_at(h, lanes[0], at_ns);
	other_ns = lull_host_next_ns(h, lanes[0], at_ns);
	end_ns = other_ns < end_ns ? other_ns : end_ns;
	is_silent = says_nothing(h, p.event);
	if (lanes[1] != lanes[0] && (is_silent || is_waiting(h, p.event))) {
		other = lull_host_at(h, lanes[1], at_ns);
		other_ns = lull_host_next_ns(h, lanes[1], at_ns);
		if (!is_silent || (other != LULL_NONE && !is_waiting(h, other)))
			p.event = other;
		end_ns = other_ns < end_ns ? other_ns : end_ns;
	}
	if (pause && ahead_ns <= at_ns) {
		p.pause = pause->kind;
		p.stack = pause->stack;
		end_ns = pause->end_ns < end_ns ? pause->end_ns : end_ns;
	} else if (ahead_ns < end_ns) {
		end_ns = ahead_ns;
	}
	p.is_seen = !says_nothing(h, p.event) || p.pause != LULL_NO_PAUSE;
	p.inside = p.event == LULL_NONE ? 0 : events[p.event].inside | called_in(sl, p.event);
	if (p.pause == LULL_HOST_BLOCKED)
		p.inside |= LULL_IN_WAIT;
	/* A range says where, samples say what; an operator or a call says both. */
	if ((sl->place->python.n || sl->place->native.n) &&
	    (p.event == LULL_NONE || events[p.event].kind == LULL_HOST_RANGE)) {
		p.is_seen = true;
		p.inside |= lull_gap_voted(sl->place);
		p.stack = p.stack ? p.stack : lull_gap_stack(sl->place);
	}
	/* The stack of a call ends in the interpreter; samples say who called that. */
	if (p.event != LULL_NONE && events[p.event].kind == LULL_HOST_OSCALL &&
	    sl->place->python.n) {
		p.inside |= lull_gap_voted(sl->place) & (LULL_IN_LOADER | LULL_IN_STORAGE);
		p.stack = p.stack ? p.stack : sl->place->python.stack;
		if ((p.inside & LULL_IN_QUEUE) && lull_gap_waits_for_lock(sl->place) &&
		    lull_location_is_lock(sl->s->reader, events[p.event].stack))
			p.inside = (p.inside & ~(u32)LULL_IN_QUEUE) | LULL_IN_LOCK;
	}
	if (has_others(sl))
		p.inside |= LULL_IN_OTHERS;
	p.to_ns = end_ns < to_ns ? end_ns : to_ns;
	if (is_handed_over(sl->s, lanes, &p))
		p.inside |= LULL_IN_FRAMEWORK;
	*(struct part *)lull_vec_push(&sl->parts) = p;
	return p.to_ns;
}

/* Launching does not take the framework so long: it does something else, or has it done. */
static bool is_long_work(const struct part *p)
{
	return p->to_ns - p->from_ns >= LULL_TN(framework_ns) && p->pause == LULL_NO_PAUSE &&
	       !(p->inside & (LULL_IN_WAIT | LULL_IN_QUEUE | LULL_IN_EVENTS));
}

/* Time that could be the program's own: not loading, writing, pausing or framework code. */
static bool could_be_own(const struct part *p)
{
	return !(p->inside & (LULL_IN_LOADER | LULL_IN_STORAGE | LULL_IN_WRITE | LULL_IN_CALLS |
			      LULL_IN_COMPILE)) &&
	       (!(p->inside & LULL_IN_FRAMEWORK) || is_long_work(p)) &&
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
		all_ns = all_ns > LULL_TN(hand_over_ns) ? all_ns - LULL_TN(hand_over_ns) : 0;
	return gap->gap_ns >= LULL_TN(gap_long_ns) &&
	       all_ns >= (unseen_ns >= seen_ns ? LULL_TN(own_unseen_ns) : LULL_TN(own_seen_ns));
}

static u8 blind_of(const struct lull_claim *c)
{
	return c->stall ? LULL_BLIND_STALL : LULL_BLIND_UNRECORDED;
}

/* Whether both are calls of the C library, and not of the same function. */
static bool are_other_calls(const struct lull_host *h, u32 a, u32 b)
{
	const struct lull_host_event *events = h->events.at;

	return a != LULL_NONE && b != LULL_NONE && events[a].kind == LULL_HOST_OSCALL &&
	       events[b].kind == LULL_HOST_OSCALL && events[a].ref != events[b].ref;
}

/* Claim a part and append it, to the last slice if that has the same cause and call. */
static void put(struct lull_subject *s, struct lull_claim *c, u32 stack)
{
	enum lull_cause_ix cause = lull_cause_of(c);
	struct lull_slice *last = s->slices.n ? lull_vec_get(&s->slices, s->slices.n - 1) : NULL;
	u32 len_ns = (u32)(c->to_ns - c->from_ns < UINT32_MAX ? c->to_ns - c->from_ns : UINT32_MAX);

	if (c->from_ns == c->to_ns)
		return;
	if (last && last->node == c->node && last->cause == cause && last->to_ns == c->from_ns &&
	    last->is_seen == c->is_seen && last->is_mute == c->is_mute &&
	    !are_other_calls(&s->host, last->event, c->event)) {
		last->to_ns = c->to_ns;
		if (len_ns > last->longest_ns) {
			last->longest_ns = len_ns;
			last->event = c->event;
			last->stack = stack;
		}
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
				     .longest_ns = len_ns,
				     .cause = (u8)cause,
				     .blind = blind_of(c),
				     .is_seen = c->is_seen,
				     .is_mute = c->is_mute };
}

/* Whether the next thing the thread does for the device is to copy a batch to it. */
static bool leads_in(const struct lull_chain *chain, u32 node_ix)
{
	u32 end = chain->first[chain->nodes[node_ix].chain + 1];

	for (u32 i = node_ix; i < end && i < node_ix + LULL_TN(batch_calls); i++) {
		const struct lull_node *node = &chain->nodes[i];

		if (node->kind == LULL_KIND_OF_COPY)
			return node->flags & LULL_NODE_IN;
		if (node->kind == LULL_KIND_OF_LAUNCH || node->kind == LULL_KIND_OF_SYNC)
			return false;
	}
	return false;
}

/* Whether the call copies at least that much to the host. */
static bool is_out(const struct lull_subject *s, const struct lull_node *node, u64 bytes)
{
	return node->kind == LULL_KIND_OF_COPY && (node->flags & LULL_NODE_OUT) &&
	       node->unit != LULL_NONE && s->units.at[node->unit].kind == LULL_UNIT_COPY &&
	       lull_units_copy(&s->units, &s->units.at[node->unit])->size_bytes >= bytes;
}

/* The step of a gap: the one before the call, where most of the gap is before that one's end. */
static u32 round_of(const struct lull_subject *s, const struct lull_gap *gap)
{
	const struct lull_node *node = &s->chain.nodes[gap->node];
	const struct lull_round *rounds = s->rounds.all.at;

	if (node->round >= s->rounds.all.n || node->flags & LULL_NODE_FIRST ||
	    rounds[node->round].mark_ns <= node->begin_ns - gap->gap_ns / 2)
		return node->round;
	return node[-1].round;
}

/* Whether data went to the host in this step, before the gap and since the last batch came in. */
static bool came_out(const struct lull_subject *s, const struct lull_gap *gap)
{
	const struct lull_node *nodes = s->chain.nodes;
	u32 first = s->chain.first[nodes[gap->node].chain], round = round_of(s, gap);

	for (u32 i = gap->node; i > first; i--) {
		const struct lull_node *node = &nodes[i - 1];

		if (node->round != round || (node->flags & LULL_NODE_IN) ||
		    gap->node - i > MAX_BACK)
			return false;
		if (is_out(s, node, LULL_LN(batch_bytes)))
			return true;
	}
	return false;
}

/* Whether the last thing before the gap was to get a result, of more than a number or two. */
static bool answers(const struct lull_subject *s, u32 node_ix)
{
	const struct lull_node *nodes = s->chain.nodes;

	for (u32 i = node_ix; i > s->chain.first[nodes[node_ix].chain]; i--) {
		const struct lull_node *node = &nodes[i - 1];

		if (node->kind == LULL_KIND_OF_COPY)
			return is_out(s, node, LULL_TN(result_bytes));
		if (node->kind == LULL_KIND_OF_LAUNCH || node_ix - i >= LULL_TN(batch_calls))
			return false;
	}
	return false;
}

/* Whether the thread mostly waits for pages of managed memory. */
static bool is_paging(const struct lull_subject *s, const struct part *p)
{
	u64 ns = lull_subject_faults(s, p->from_ns, p->to_ns) * LULL_TN(host_fault_ns);

	if (!s->faults.n && !s->moves.n)
		return false;
	ns += lull_subject_moves_ns(s, p->from_ns, p->to_ns);
	return (f64)ns >= LULL_T(paging) * (f64)(p->to_ns - p->from_ns);
}

/* What was recorded needs no guess: a call, a wait. */
static bool is_told(const struct lull_subject *s, const struct part *p)
{
	const struct lull_host_event *events = s->host.events.at;

	return p->pause != LULL_NO_PAUSE ||
	       (p->event != LULL_NONE && events[p->event].kind == LULL_HOST_OSCALL &&
		(p->inside & (LULL_IN_SLEEP | LULL_IN_LOCK | LULL_IN_QUEUE | LULL_IN_EVENTS |
			      LULL_IN_FILE | LULL_IN_WRITE | LULL_IN_SOCKET | LULL_IN_DEMAND))) ||
	       (p->inside & LULL_IN_GC);
}

/* The thread waits: in a call for somebody else, or without a CPU in no call that was recorded. */
static bool is_mute(const struct lull_subject *s, const struct part *p)
{
	const struct lull_host_event *events = s->host.events.at;

	if (p->event != LULL_NONE && events[p->event].kind == LULL_HOST_OSCALL)
		return p->inside & (LULL_IN_LOCK | LULL_IN_QUEUE | LULL_IN_EVENTS);
	return p->pause == LULL_HOST_BLOCKED;
}

/* Each part gives the stall its share; the last one what rounding left. */
static void claim_parts(struct slicer *sl, const struct lull_gap *gap, bool is_hand_over)
{
	struct lull_subject *s = sl->s;
	const struct part *parts = sl->parts.at;
	bool is_own = has_own(sl, gap, is_hand_over);
	bool has_in = leads_in(&s->chain, gap->node), has_out = came_out(s, gap);
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
			.is_told = is_told(s, p),
			.is_mute = is_mute(s, p),
			.recurs = sl->place->n > 1,
			.is_moving = is_paging(s, p),
			.leads_in = has_in,
			.came_out = has_out,
			.answers = answers(s, gap->node),
			.marks = s->marks[gap->node],
		};

		if (i + 1 == sl->parts.n)
			stall_ns = stall_left_ns < len_ns ? stall_left_ns : len_ns;
		stall_ns = c.is_told ? 0 : stall_ns;
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

/* Where a large mapping comes or goes, it is what the rest of the gap fills. */
static void share_maps(struct slicer *sl)
{
	struct part *parts = sl->parts.at;
	u32 maps = 0;

	for (size_t i = 0; i < sl->parts.n; i++)
		maps |= parts[i].inside & LULL_IN_MAPS;
	for (size_t i = 0; i < sl->parts.n; i++)
		parts[i].inside |= maps;
}

static bool is_call(const struct lull_host *h, const struct part *p)
{
	return p->event != LULL_NONE &&
	       ((const struct lull_host_event *)h->events.at)[p->event].kind == LULL_HOST_OSCALL;
}

/* Whether it opens a file that is then written. */
static bool opens_to_write(const struct slicer *sl, const struct part *p)
{
	const struct lull_host *h = &sl->s->host;

	return is_call(h, p) && (p->inside & LULL_IN_WRITE) &&
	       lull_call_opens(lull_host_name(lull_vec_get(&h->events, p->event), sl->s->reader));
}

/*
 * What the function that writes a file does from opening it to the last call that writes is the
 * making of what it writes: pickling, formatting, compressing.
 */
static void share_writes(struct slicer *sl)
{
	const struct lull_host *h = &sl->s->host;
	struct part *parts = sl->parts.at;
	size_t first = 0, last = sl->parts.n;

	while (first < sl->parts.n && !opens_to_write(sl, &parts[first]))
		first++;
	while (last > first &&
	       !(is_call(h, &parts[last - 1]) && (parts[last - 1].inside & LULL_IN_WRITE)))
		last--;
	if (first >= last || !lull_gap_fills(sl->place))
		return;
	for (size_t i = first; i < last; i++)
		parts[i].inside |= is_call(h, &parts[i]) || parts[i].pause != LULL_NO_PAUSE
					   ? 0
					   : LULL_IN_WRITE;
}

/*
 * Where a call says how long the thread waits, samples of that wait say nothing about what it does
 * on a CPU before and after.
 */
static void end_waits(struct slicer *sl)
{
	const u32 waits =
		LULL_IN_SOCKET | LULL_IN_EVENTS | LULL_IN_DEMAND | LULL_IN_QUEUE | LULL_IN_LOCK;
	const struct lull_host *h = &sl->s->host;
	struct part *parts = sl->parts.at;
	bool is_told = false;

	for (size_t i = 0; i < sl->parts.n; i++)
		is_told |= is_call(h, &parts[i]) && (parts[i].inside & (waits | LULL_IN_SLEEP));
	for (size_t i = 0; i < sl->parts.n && is_told && h->has_sched; i++)
		parts[i].inside &= is_call(h, &parts[i]) || parts[i].pause != LULL_NO_PAUSE
					   ? UINT32_MAX
					   : ~waits;
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
	share_maps(sl);
	share_writes(sl);
	end_waits(sl);
	claim_parts(sl, gap, lanes[0] != lanes[1]);
}

/* For how much of [from_ns, to_ns) the thread wanted a CPU and had none. */
static u64 preempted_ns(const struct lull_host *h, u32 lane, u64 from_ns, u64 to_ns)
{
	const struct lull_host_pause *at = h->pauses.at;
	u64 sum = 0;

	for (size_t i = lull_host_pause_at(h, lane, from_ns);
	     i < h->pauses.n && at[i].lane == lane && at[i].begin_ns < to_ns; i++) {
		struct lull_span part = { at[i].begin_ns, at[i].end_ns };

		part = lull_span_cut(part, from_ns, to_ns);
		sum += at[i].kind == LULL_HOST_PREEMPTED ? part.to_ns - part.from_ns : 0;
	}
	return sum;
}

/* The cause of a call that took long for a reason of the thread, not of the call. */
static u8 cause_of_call(const struct lull_subject *s, u32 node, u8 stall)
{
	struct lull_claim c = { .subject = s,
				.place = LULL_PLACE_CALL,
				.unit = LULL_NONE,
				.node = node,
				.event = LULL_NONE,
				.from_ns = s->chain.nodes[node].begin_ns,
				.to_ns = s->chain.nodes[node].end_ns,
				.pause = LULL_NO_PAUSE,
				.stall = stall,
				.marks = s->marks[node] };

	return (u8)lull_cause_of(&c);
}

/* Launches that took long since the thread lost its CPU in them. */
static void mark_preempted(struct lull_subject *s)
{
	for (u32 i = 0; s->host.has_sched && i < s->chain.n; i++) {
		const struct lull_node *node = &s->chain.nodes[i];
		u64 len_ns = node->end_ns - node->begin_ns;

		if (node->kind == LULL_KIND_OF_LAUNCH && len_ns >= LULL_TN(gap_long_ns) &&
		    preempted_ns(&s->host, node->lane, node->begin_ns, node->end_ns) * 2 > len_ns)
			s->marks[i] |= LULL_MARK_PREEMPTED;
	}
}

/* Whether a cause has the gap before this call that data is copied to the host for. */
static bool is_written(const struct lull_subject *s, u32 node)
{
	const struct lull_slice *slices = s->slices.at;

	for (size_t i = s->chain.nodes[node].slice; i < s->slices.n && slices[i].node == node;
	     i++) {
		if (lull_causes[slices[i].cause]->owns_copies)
			return true;
	}
	return false;
}

/* Tensors that are copied to the host and then written are part of the writing. */
static void mark_saved(struct lull_subject *s)
{
	struct lull_node *nodes = s->chain.nodes;

	for (u32 i = 0; i + 1 < s->chain.n; i++) {
		bool waits = nodes[i + 1].kind == LULL_KIND_OF_SYNC && i + 2 < s->chain.n;
		u32 next = waits ? i + 2 : i + 1;

		if (!is_out(s, &nodes[i], LULL_LN(batch_bytes)) ||
		    nodes[next].chain != nodes[i].chain || !is_written(s, next))
			continue;
		nodes[i].flags |= LULL_NODE_SAVED;
		if (waits)
			nodes[i + 1].flags |= LULL_NODE_SAVED;
	}
}

void lull_subject_slice(struct lull_subject *s)
{
	struct slicer sl = { .s = s };
	const struct lull_gap *gap;
	struct lull_gaps gaps;

	sl.lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &sl.n_lanes);
	lull_subject_mark(s);
	lull_gaps_init(&gaps, s);
	lull_vec_init(&sl.parts, sizeof(struct part));
	gap = gaps.all.at;
	for (size_t i = 0; i < gaps.all.n; i++, gap++) {
		struct lull_node *node = &s->chain.nodes[gap->node];

		sl.place = lull_vec_get(&gaps.places, gap->place);
		if (gap->gap_ns >= LULL_TN(gap_long_ns))
			slice_gap(&sl, gap);
		if (gap->call_stall_ns)
			node->cause = cause_of_call(s, gap->node, s->stalls.kind);
	}
	mark_saved(s);
	mark_preempted(s);
	lull_giver_init(&s->giver, s);
	lull_vec_release(&sl.parts);
	lull_gaps_release(&gaps);
}
