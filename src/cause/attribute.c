/*
 * attribute - every nanosecond in which the device computes nothing gets one cause.
 *
 * Idle time [a, b) is ended by a unit, which a call L launched:
 *	L ended before a	it waited on the device; the host is not the cause
 *	[max(a, L), b)		latency of the launch
 *	[a, L)			what the chain of L's thread did: calls and gaps
 * Launch latency after a wait for the device counts for the wait: without the wait, the launches
 * would already have been queued.
 */
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/location.h"
#include "cause/lost.h"
#include "cause/marks.h"
#include "cause/subject.h"
#include "cause/thresholds.h"

/* Steps by cause are kept for this many steps; more are only summed. */
#define MAX_STEPS 65536u
/* Intervals kept for the page; then only longer ones are. */
#define MAX_INTERVALS 500000u

struct work {
	struct lull_subject *s;
	struct lull_map where; /* hash to index in wheres */
	/* Causes of launches that are late by themselves, and of those a wait exposed. */
	enum lull_cause_ix launching, exposing;
};

/* ---- book-keeping ---- */

static void keep_interval(struct lull_subject *s, const struct lull_split_piece *piece, u64 from_ns,
			  u64 to_ns, u8 cause)
{
	struct lull_interval *last =
		s->intervals.n ? lull_vec_get(&s->intervals, s->intervals.n - 1) : NULL;

	if (last && last->to_ns == from_ns && last->cause == cause && last->round == piece->round) {
		last->to_ns = to_ns;
		return;
	}
	/* The one before is complete: drop it if it is too short to keep. */
	if (last && last->to_ns - last->from_ns < s->min_interval_ns)
		s->intervals.n--;
	if (s->intervals.n >= MAX_INTERVALS) {
		struct lull_interval *at = s->intervals.at;
		size_t n = 0;

		s->min_interval_ns = s->min_interval_ns ? 2 * s->min_interval_ns : 1000;
		for (size_t i = 0; i < s->intervals.n; i++) {
			if (at[i].to_ns - at[i].from_ns >= s->min_interval_ns)
				at[n++] = at[i];
		}
		s->intervals.n = n;
	}
	*(struct lull_interval *)lull_vec_push(&s->intervals) =
		(struct lull_interval){ from_ns, to_ns, piece->round, piece->unit, cause };
}

/* What an event is called in the list of places: its innermost named range or Python function. */
static u64 place_key(const struct lull_subject *s, u32 event, bool by_range)
{
	const struct lull_host_event *events = s->host.events.at;
	u64 first = 0;

	for (u32 e = event; e != LULL_NONE; e = events[e].parent) {
		u64 key = (u64)(events[e].kind + 1) << 32 | events[e].ref;

		/* The program's own names are better known to its author than ours. */
		if (events[e].kind == LULL_HOST_RANGE && (events[e].inside & LULL_IN_NAMED) &&
		    !(events[e].is_hook && (events[e].inside & LULL_IN_USER)))
			return key;
		if (events[e].kind == LULL_HOST_PYCALL && !by_range)
			return key;
		first = first ? first : key;
	}
	return by_range ? 0 : first;
}

/*
 * The stack that was recorded with a call, or with the call of the C library in which it waits; 0
 * if there is none.
 */
static u32 recorded_stack(const struct lull_subject *s, u32 node_ix)
{
	const struct lull_node *node = &s->chain.nodes[node_ix];
	u32 found = lull_chain_stack(&s->chain, node_ix), event;
	const struct lull_host_event *e;

	if (found)
		return found;
	event = lull_host_at(&s->host, node->lane,
			     node->begin_ns + (node->end_ns - node->begin_ns) / 2);
	if (event == LULL_NONE)
		return 0;
	e = lull_vec_get(&s->host.events, event);
	return e->kind == LULL_HOST_OSCALL && e->begin_ns >= node->begin_ns ? e->stack : 0;
}

/* Whether the piece is of the same call, or of the same gap and what happens in it, as the last. */
static bool is_same_time(const struct lull_where *where, const struct lull_claim *c)
{
	return where->n && where->last_node == c->node &&
	       (c->place != LULL_PLACE_GAP || where->last_event == c->event);
}

/* How often a place is there, and in which rounds: a call that goes on in the next counts once. */
static void count_visit(struct lull_subject *s, struct lull_where *where,
			const struct lull_claim *c, u32 round)
{
	if (is_same_time(where, c))
		return;
	if (!where->n || where->last_round != round)
		*(struct lull_visit *)lull_vec_push(&s->visits) =
			(struct lull_visit){ .where = where->number, .round = round };
	where->n++;
	where->last_round = round;
}

static void keep_where(struct work *w, const struct lull_claim *c, enum lull_cause_ix cause,
		       u32 stack, u32 round)
{
	struct lull_subject *s = w->s;
	const struct lull_node *node = lull_claim_node(c);
	u64 key[4] = { cause, 0, 0, 0 }, ns = c->to_ns - c->from_ns;
	struct lull_where *where;
	bool is_new;
	u32 *ix;

	if (lull_causes[cause]->places == LULL_PLACES_NONE)
		return;
	/* A launch is a launch; other calls are told apart. */
	if (node && node->kind != LULL_KIND_OF_LAUNCH && c->place != LULL_PLACE_GAP)
		key[1] = node->name;
	key[2] = place_key(s, c->event, lull_causes[cause]->places == LULL_PLACES_BY_RANGE);
	/* Calls that were recorded with their line are told apart by it. */
	if (node && (c->place == LULL_PLACE_CALL || c->place == LULL_PLACE_LOST ||
		     c->place == LULL_PLACE_COPY))
		key[3] = lull_location_frame(s, recorded_stack(s, c->node));
	ix = lull_map_add(&w->where, lull_hash(key, sizeof(key)), &is_new);
	if (is_new) {
		*ix = (u32)s->wheres.n;
		*(struct lull_where *)lull_vec_push(&s->wheres) =
			(struct lull_where){ .cause = (u8)cause, .round = round, .number = *ix };
	}
	where = lull_vec_get(&s->wheres, *ix);
	/* The idle time at the start of a round began in what the one before did last. */
	where->recurs |= round > where->round + 1;
	where->ns += ns;
	count_visit(s, where, c, round);
	where->last_node = c->node;
	where->last_event = c->event;
	if (ns >= where->to_ns - where->from_ns) {
		where->from_ns = c->from_ns;
		where->to_ns = c->to_ns;
		where->node = c->node;
		where->event = key[2] ? c->event : LULL_NONE;
		where->unit = c->unit;
	}
	/* Samples are sparse: the longest piece may have none. */
	if (stack && ns >= where->stack_ns) {
		where->stack = stack;
		where->stack_ns = ns;
	}
}

static void cost(struct work *w, const struct lull_split_piece *piece, const struct lull_claim *c,
		 enum lull_cause_ix cause, u32 stack)
{
	struct lull_subject *s = w->s;
	u64 ns = c->to_ns - c->from_ns;

	if (!ns)
		return;
	s->cost_ns[cause] += ns;
	if (s->step_cost_ns)
		s->step_cost_ns[(size_t)(piece->round - s->rounds.first_steady) *
					LULL_SUBJECT_CAUSES +
				cause] += ns;
	keep_interval(s, piece, c->from_ns, c->to_ns, (u8)cause);
	keep_where(w, c, cause, stack, piece->round);
}

/* ---- calls ---- */

/* Whether the last span that begins before to_ns reaches into [from_ns, to_ns). */
static bool is_in(const struct lull_vec *spans, u64 from_ns, u64 to_ns)
{
	size_t i = lull_vec_upper(spans, offsetof(struct lull_span, from_ns), to_ns);
	const struct lull_span *at = spans->at;

	return i && at[i - 1].to_ns > from_ns;
}

static void fill_host(struct lull_claim *c)
{
	const struct lull_node *node = lull_claim_node(c);
	const struct lull_host *h = &c->subject->host;

	c->event = node ? lull_host_at(h, node->lane, node->begin_ns) : LULL_NONE;
	if (c->event != LULL_NONE)
		c->inside = ((const struct lull_host_event *)h->events.at)[c->event].inside;
}

/* The cause of time in this call, remembered in the node. */
static enum lull_cause_ix judge_call(struct work *w, struct lull_claim *c)
{
	struct lull_node *node = &w->s->chain.nodes[c->node];

	fill_host(c);
	if (node->cause == LULL_N_CAUSES) {
		struct lull_claim whole = *c;

		whole.from_ns = node->begin_ns;
		whole.to_ns = node->end_ns;
		whole.is_lazy = is_in(&w->s->lazy, node->begin_ns, node->end_ns);
		whole.marks = w->s->marks[c->node];
		node->cause = (u8)lull_cause_of(&whole);
	}
	if (lull_causes[node->cause]->kind == LULL_CAUSE_BLIND)
		w->s->blind_ns[LULL_BLIND_STALL] += c->to_ns - c->from_ns;
	return (enum lull_cause_ix)node->cause;
}

/*
 * The stack that was recorded with the call, else one that a sample found in it, of Python if there
 * is any; 0 if there is none.
 */
static u32 stack_in(const struct lull_subject *s, const struct lull_node *node)
{
	const struct lull_host_sample *samples = s->host.samples.at;
	u32 found = recorded_stack(s, (u32)(node - s->chain.nodes));

	if (found)
		return found;
	for (size_t i = lull_host_sample_at(&s->host, node->lane, node->begin_ns);
	     i < s->host.samples.n && samples[i].lane == node->lane &&
	     samples[i].at_ns < node->end_ns;
	     i++) {
		found = samples[i].stack;
		if (samples[i].is_python)
			break;
	}
	return found;
}

/* ---- idle time ---- */

/*
 * What made the host wait for the device when it went idle, or LULL_N_CAUSES: a wait, or a call
 * that frees memory, which waits first.
 */
static enum lull_cause_ix drained_by(struct work *w, u32 chain, u64 at_ns)
{
	const struct lull_subject *s = w->s;
	u32 i = lull_chain_find(&s->chain, chain, at_ns);
	const struct lull_node *node = &s->chain.nodes[i];
	struct lull_claim c = { .subject = s,
				.place = LULL_PLACE_CALL,
				.unit = LULL_NONE,
				.node = i,
				.pause = LULL_NO_PAUSE };

	if (i == s->chain.first[chain + 1])
		return LULL_N_CAUSES;
	if ((node->kind == LULL_KIND_OF_ALLOC && node->begin_ns < at_ns) ||
	    (s->marks[i] & LULL_MARK_POLL))
		return judge_call(w, &c);
	if (node->kind != LULL_KIND_OF_SYNC &&
	    !(node->kind == LULL_KIND_OF_COPY && (node->flags & LULL_NODE_OUT)))
		return LULL_N_CAUSES;
	return !(node->flags & LULL_NODE_OWNED) && node->begin_ns <= at_ns + LULL_TN(drain_ns)
		       ? w->exposing
		       : LULL_N_CAUSES;
}

struct idle {
	const struct lull_split_piece *piece;
	enum lull_cause_ix drained_by; /* or LULL_N_CAUSES */
	u32 drain;		       /* the call that is, if it was recorded with its line */
};

/* Pay for what a wait exposed, at the line of the wait. */
static void pay_rest(struct work *w, const struct idle *idle, const struct lull_claim *c)
{
	struct lull_claim wait = *c;

	wait.place = LULL_PLACE_CALL;
	wait.node = idle->drain;
	fill_host(&wait);
	cost(w, idle->piece, &wait, idle->drained_by, recorded_stack(w->s, idle->drain));
}

/* Pay for one part; what a wait exposed is the wait's. */
static void pay(struct work *w, const struct idle *idle, struct lull_claim *c,
		enum lull_cause_ix cause, u32 stack)
{
	if (cause == w->launching && idle->drained_by != LULL_N_CAUSES) {
		if (idle->drained_by == w->exposing)
			w->s->exposed_ns += c->to_ns - c->from_ns;
		cause = idle->drained_by;
		if (idle->drain != LULL_NONE) {
			pay_rest(w, idle, c);
			return;
		}
	}
	cost(w, idle->piece, c, cause, stack);
}

static void pay_gap(struct work *w, const struct idle *idle, struct lull_claim *c)
{
	struct lull_subject *s = w->s;
	const struct lull_slice *slice = s->slices.at;
	u64 from_ns = c->from_ns, to_ns = c->to_ns;
	size_t i = s->chain.nodes[c->node].slice;

	c->place = LULL_PLACE_GAP;
	if (i == LULL_NONE) {
		c->gap_ns = to_ns - from_ns;
		c->event = lull_host_at(&s->host, s->chain.nodes[c->node].lane, to_ns - 1);
		c->marks = s->marks[c->node];
		pay(w, idle, c, c->marks ? lull_cause_of(c) : w->launching, 0);
		return;
	}
	for (; i < s->slices.n && slice[i].node == c->node && slice[i].from_ns < to_ns; i++) {
		c->from_ns = slice[i].from_ns > from_ns ? slice[i].from_ns : from_ns;
		c->to_ns = slice[i].to_ns < to_ns ? slice[i].to_ns : to_ns;
		if (c->from_ns >= c->to_ns)
			continue;
		c->event = slice[i].event;
		if (lull_causes[slice[i].cause]->kind == LULL_CAUSE_BLIND)
			s->blind_ns[slice[i].blind] += c->to_ns - c->from_ns;
		if (!slice[i].is_seen)
			s->unseen_ns[slice[i].cause] += c->to_ns - c->from_ns;
		else if (slice[i].is_mute)
			s->mute_ns[slice[i].cause] += c->to_ns - c->from_ns;
		pay(w, idle, c, (enum lull_cause_ix)slice[i].cause, slice[i].stack);
	}
}

/* The thread may have no CPU in the call: only that time is the scheduler's. */
static void pay_call(struct work *w, const struct idle *idle, struct lull_claim *c)
{
	u32 stack = stack_in(w->s, &w->s->chain.nodes[c->node]);
	u64 from_ns = c->from_ns, to_ns = c->to_ns;
	struct lull_span lost;

	for (; lull_lost_next(w->s, c->node, from_ns, to_ns, &lost); from_ns = lost.to_ns) {
		c->place = LULL_PLACE_CALL;
		c->from_ns = from_ns;
		c->to_ns = lost.from_ns;
		pay(w, idle, c, judge_call(w, c), stack);
		c->place = LULL_PLACE_LOST;
		c->from_ns = lost.from_ns;
		c->to_ns = lost.to_ns;
		pay(w, idle, c, lull_cause_of(c), stack);
	}
	c->place = LULL_PLACE_CALL;
	c->from_ns = from_ns;
	c->to_ns = to_ns;
	pay(w, idle, c, judge_call(w, c), stack);
}

/* Walk the chain over [from_ns, to_ns). */
static void walk(struct work *w, const struct idle *idle, u32 chain, u64 from_ns, u64 to_ns)
{
	const struct lull_chain *ch = &w->s->chain;
	struct lull_claim c = { .subject = w->s, .unit = idle->piece->unit };

	for (u32 i = lull_chain_find(ch, chain, from_ns);
	     from_ns < to_ns && i < ch->first[chain + 1]; i++) {
		const struct lull_node *node = &ch->nodes[i];

		c.node = i;
		c.pause = LULL_NO_PAUSE;
		c.event = LULL_NONE;
		if (node->begin_ns > from_ns) {
			c.from_ns = from_ns;
			c.to_ns = node->begin_ns < to_ns ? node->begin_ns : to_ns;
			from_ns = c.to_ns;
			pay_gap(w, idle, &c);
		}
		if (node->end_ns > from_ns && from_ns < to_ns) {
			c.from_ns = from_ns;
			c.to_ns = node->end_ns < to_ns ? node->end_ns : to_ns;
			from_ns = c.to_ns;
			pay_call(w, idle, &c);
		}
	}
}

/*
 * What holds back work that this call started: the rest of its graph, or a whole graph right before
 * it of which nothing was recorded; else it is not known.
 */
static enum lull_blind held_back(const struct lull_subject *s, u32 node_ix)
{
	const struct lull_node *nodes = s->chain.nodes;
	u32 i = node_ix, first = s->chain.first[nodes[node_ix].chain];

	do {
		if (strstr(lull_reader_string(s->reader, nodes[i].name, NULL), "GraphLaunch"))
			return LULL_BLIND_GRAPH;
	} while (i-- > first && nodes[i].unit == LULL_NONE);
	return LULL_BLIND_DEVICE;
}

static void pay_blind(struct work *w, const struct idle *idle, struct lull_claim *c,
		      enum lull_blind blind)
{
	enum lull_cause_ix cause;

	c->is_moving = is_in(&w->s->moves, c->from_ns, c->to_ns);
	cause = lull_cause_of(c);
	if (lull_causes[cause]->kind == LULL_CAUSE_BLIND)
		w->s->blind_ns[blind] += c->to_ns - c->from_ns;
	cost(w, idle->piece, c, cause, 0);
}

/* From the call on: latency, and what is far beyond it. */
static void pay_latency(struct work *w, const struct idle *idle, u32 node_ix, u64 from_ns)
{
	const struct lull_node *node = &w->s->chain.nodes[node_ix];
	u64 to_ns = idle->piece->to_ns, last_ns = node->end_ns + LULL_TN(latency_ns);
	struct lull_claim c = { .subject = w->s,
				.place = LULL_PLACE_LATENCY,
				.unit = idle->piece->unit,
				.node = node_ix,
				.from_ns = from_ns,
				.to_ns = to_ns < last_ns ? to_ns : last_ns,
				.pause = LULL_NO_PAUSE };

	fill_host(&c);
	c.is_lazy = is_in(&w->s->lazy, node->begin_ns, node->end_ns);
	c.marks = w->s->marks[node_ix];
	c.is_moving = is_in(&w->s->moves, c.from_ns, c.to_ns);
	if (c.to_ns > c.from_ns)
		pay(w, idle, &c, lull_cause_of(&c), 0);
	else
		c.to_ns = c.from_ns;
	if (c.to_ns < to_ns) {
		c.from_ns = c.to_ns;
		c.to_ns = to_ns;
		c.place = LULL_PLACE_DEVICE;
		pay_blind(w, idle, &c, held_back(w->s, node_ix));
	}
}

static void pay_idle(struct work *w, const struct lull_split_piece *piece)
{
	struct lull_subject *s = w->s;
	u32 node_ix = piece->unit == LULL_NONE ? LULL_NONE : s->units.at[piece->unit].node;
	struct lull_claim c = { .subject = s,
				.place = LULL_PLACE_UNLINKED,
				.unit = piece->unit,
				.node = node_ix,
				.event = LULL_NONE,
				.from_ns = piece->from_ns,
				.to_ns = piece->to_ns,
				.pause = LULL_NO_PAUSE };
	struct idle idle = { piece, LULL_N_CAUSES, LULL_NONE };
	const struct lull_node *node;

	if (node_ix == LULL_NONE) {
		pay_blind(w, &idle, &c, LULL_BLIND_UNLINKED);
		return;
	}
	node = &s->chain.nodes[node_ix];
	if (node->end_ns <= piece->from_ns) {
		c.place = LULL_PLACE_DEVICE;
		pay_blind(w, &idle, &c, held_back(s, node_ix));
		return;
	}
	idle.drained_by = drained_by(w, node->chain, piece->from_ns);
	if (idle.drained_by != LULL_N_CAUSES)
		idle.drain = lull_chain_find(&s->chain, node->chain, piece->from_ns);
	if (idle.drain != LULL_NONE && !recorded_stack(s, idle.drain))
		idle.drain = LULL_NONE;
	if (node->begin_ns > piece->from_ns) {
		u64 to_ns = node->begin_ns < piece->to_ns ? node->begin_ns : piece->to_ns;

		walk(w, &idle, node->chain, piece->from_ns, to_ns);
		if (to_ns < piece->to_ns)
			pay_latency(w, &idle, node_ix, to_ns);
		return;
	}
	pay_latency(w, &idle, node_ix, piece->from_ns);
}

/* ---- what else is not compute ---- */

static void pay_unit(struct work *w, const struct lull_split_piece *piece, enum lull_place place)
{
	struct lull_subject *s = w->s;
	struct lull_claim c = { .subject = s,
				.place = place,
				.unit = piece->unit,
				.node = s->units.at[piece->unit].node,
				.event = LULL_NONE,
				.from_ns = piece->from_ns,
				.to_ns = piece->to_ns,
				.pause = LULL_NO_PAUSE };
	u64 wait_ns = 0;

	fill_host(&c);
	c.marks = c.node == LULL_NONE ? 0 : s->marks[c.node];
	/* A collective is waiting for the last rank first, and transfer then. */
	if (place == LULL_PLACE_COLLECTIVE)
		wait_ns = lull_u64_of(s->ranks.wait_share * (f64)(piece->to_ns - piece->from_ns));
	if (wait_ns) {
		c.to_ns = c.from_ns + wait_ns;
		c.is_late = true;
		cost(w, piece, &c, lull_cause_of(&c), 0);
		c.is_late = false;
		c.from_ns = c.to_ns;
		c.to_ns = piece->to_ns;
	}
	cost(w, piece, &c, lull_cause_of(&c), c.node == LULL_NONE ? 0 : recorded_stack(s, c.node));
}

static void on_piece(void *ctx, const struct lull_split_piece *piece)
{
	struct work *w = ctx;

	w->s->split_ns[piece->kind] += piece->to_ns - piece->from_ns;
	w->s->window_ns += piece->to_ns - piece->from_ns;
	if (piece->kind == LULL_SPLIT_IDLE)
		pay_idle(w, piece);
	else if (piece->kind == LULL_SPLIT_COPY)
		pay_unit(w, piece, LULL_PLACE_COPY);
	else if (piece->kind == LULL_SPLIT_COLLECTIVE)
		pay_unit(w, piece, LULL_PLACE_COLLECTIVE);
}

static int by_ns(const void *a, const void *b)
{
	const struct lull_where *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

void lull_subject_attribute(struct lull_subject *s)
{
	u32 n = lull_rounds_n_steady(&s->rounds);
	struct work w = { .s = s, .launching = lull_cause_default(LULL_CAUSE_RESIDUE) };

	w.exposing = w.launching;
	for (int i = 0; i < LULL_N_CAUSES; i++)
		w.exposing = lull_causes[i]->exposes ? (enum lull_cause_ix)i : w.exposing;
	if (n <= MAX_STEPS)
		s->step_cost_ns = lull_alloc((size_t)n * LULL_SUBJECT_CAUSES + 1, sizeof(u64));
	lull_map_init(&w.where);
	lull_split_run(&s->units, &s->rounds, on_piece, &w);
	lull_map_release(&w.where);
	if (s->wheres.n)
		lull_sort(s->wheres.at, s->wheres.n, sizeof(struct lull_where), by_ns);
}
