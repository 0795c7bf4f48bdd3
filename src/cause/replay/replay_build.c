/*
 * replay_build - the graph of a stretch of steps, with the delays that were measured.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/cause.h"
#include "cause/replay/replay.h"
#include "cause/replay/replay_int.h"
#include "cause/thresholds.h"

#define MAX_STREAMS 4096
#define MAX_LOOKED  256 /* streams that may be what is waited for */
#define QUEUE	    LULL_REPLAY_QUEUE

/* What the sweep knows of each stream. */
struct stream {
	u64 end_ns; /* of its last unit */
	u32 op;	    /* that unit, or LULL_NONE */
};

struct build {
	struct lull_replay *p;
	const struct lull_subject *s;
	struct stream *streams;
	struct lull_vec launch, next, calls; /* f64: what was measured */
	u64 ring[QUEUE];
	u64 n_enqueued;
	f64 per_call_ns, per_event_ns;
	u32 last_wait; /* node of the last wait of this step, for loops */
	u32 n_loop;
	u32 round;    /* of the node before */
	u32 first;    /* last node of the first chain, or LULL_NONE */
	u64 begin_ns; /* where the first thread's gap before its first call begins */
};

static f64 median(struct lull_vec *v, f64 otherwise)
{
	f64 *at = v->at;

	if (v->n < LULL_TN(delays_count))
		return otherwise;
	lull_sort_f64(at, v->n);
	return at[v->n / 2];
}

/* Steps in a row, from the first steady one, with at most LULL_REPLAY_NODES calls. */
static void pick_rounds(struct build *b)
{
	const struct lull_subject *s = b->s;
	u32 first = s->rounds.first_steady, last = first, n = 0;

	for (u32 i = s->chain.first[0]; i < s->chain.first[1]; i++) {
		u32 round = s->chain.nodes[i].round;

		if (round == LULL_NONE || round < first)
			continue;
		if (!n)
			b->begin_ns = lull_chain_gap_ns(&s->chain, i);
		if (++n > LULL_REPLAY_NODES && round > last)
			break;
		last = round;
	}
	b->p->first_round = first;
	b->p->n_rounds = last - first + 1;
	b->p->measured_ns = (f64)(lull_round_end_ns(&s->rounds, last) -
				  lull_round_begin_ns(&s->rounds, first)) /
			    b->p->n_rounds;
}

/* ---- units ---- */

static void keep(struct lull_vec *v, f64 ns)
{
	*(f64 *)lull_vec_push(v) = ns;
}

/* First pass: which delays were exposed. */
static void measure_unit(struct build *b, const struct lull_node *node,
			 const struct lull_unit *unit)
{
	const struct stream *st = &b->streams[unit->stream];

	if (unit->begin_ns < node->begin_ns)
		return;
	if (st->op == LULL_NONE || st->end_ns + LULL_TN(next_ns) <= node->begin_ns) {
		if (unit->kind != LULL_UNIT_COPY)
			keep(&b->launch, (f64)(unit->begin_ns - node->begin_ns));
	} else if (unit->begin_ns >= st->end_ns && st->end_ns > node->end_ns) {
		keep(&b->next, (f64)(unit->begin_ns - st->end_ns));
	}
}

/* The unit of another stream that ended just before this one began, or LULL_NONE. */
static u32 find_cause(const struct build *b, const struct lull_unit *unit, f64 *lag_ns)
{
	u32 found = LULL_NONE;
	u64 best_ns = 0;

	for (size_t i = 0; i < b->s->units.lanes.n && i < MAX_LOOKED; i++) {
		const struct stream *st = &b->streams[i];

		if (i == unit->stream || st->op == LULL_NONE || st->end_ns > unit->begin_ns ||
		    unit->begin_ns - st->end_ns > LULL_TN(after_ns) || st->end_ns < best_ns)
			continue;
		best_ns = st->end_ns;
		found = st->op;
	}
	*lag_ns = found == LULL_NONE ? 0 : (f64)(unit->begin_ns - best_ns);
	return found;
}

static void add_op(struct build *b, const struct lull_node *node, u32 unit_ix, bool is_later)
{
	const struct lull_unit *unit = &b->s->units.at[unit_ix];
	struct stream *st = &b->streams[unit->stream];
	struct lull_replay_op op = { .dur_ns = (f64)(unit->end_ns - unit->begin_ns),
				     .launch_ns = b->p->launch_ns,
				     .next_ns = b->p->next_ns,
				     .after = LULL_NONE,
				     .unit = unit_ix,
				     .stream = unit->stream };
	const struct lull_copy *copy =
		unit->kind == LULL_UNIT_COPY ? lull_units_copy(&b->s->units, unit) : NULL;
	f64 begin = (f64)unit->begin_ns, launched = begin - (f64)node->begin_ns;
	f64 queued = begin - (f64)st->end_ns;
	bool is_free = st->op == LULL_NONE || queued - b->p->next_ns >= launched - b->p->launch_ns;

	op.is_carried = copy && lull_copy_is_pageable(copy);
	if (is_free && !is_later) {
		op.launch_ns = launched > 0 ? launched : 0;
		if (launched > b->p->launch_ns + LULL_T(late_ns))
			op.after = find_cause(b, unit, &op.lag_ns);
		if (op.after != LULL_NONE)
			op.launch_ns = b->p->launch_ns;
		if (st->op != LULL_NONE && queued < op.next_ns)
			op.next_ns = queued;
	} else {
		op.next_ns = queued;
		if (queued > b->p->next_ns + LULL_T(late_ns))
			op.after = find_cause(b, unit, &op.lag_ns);
		if (op.after != LULL_NONE)
			op.next_ns = b->p->next_ns;
		if (launched < op.launch_ns)
			op.launch_ns = launched > 0 ? launched : 0;
	}
	if (unit->end_ns > st->end_ns || st->op == LULL_NONE) {
		st->end_ns = unit->end_ns;
		st->op = (u32)b->p->ops.n;
	}
	b->ring[b->n_enqueued++ % QUEUE] = unit->end_ns;
	*(struct lull_replay_op *)lull_vec_push(&b->p->ops) = op;
}

/* ---- calls ---- */

/* Which stream ended last before the call returned, and inside it. */
static void find_awaited(const struct build *b, const struct lull_node *node,
			 struct lull_replay_node *rn)
{
	const struct lull_replay_op *ops = b->p->ops.at;
	u64 best_ns = 0;

	for (size_t i = 0; i < b->s->units.lanes.n && i < MAX_LOOKED; i++) {
		u32 op = b->streams[i].op;
		u64 end_ns;

		if (op == LULL_NONE)
			continue;
		end_ns = b->s->units.at[ops[op].unit].end_ns;
		if (end_ns <= node->begin_ns || end_ns > node->end_ns + LULL_TN(clock_slack_ns) ||
		    end_ns <= best_ns)
			continue;
		best_ns = end_ns;
		rn->wait = LULL_REPLAY_STREAM;
		rn->stream = (u16)i;
	}
	if (rn->wait == LULL_REPLAY_RUNS)
		return;
	rn->return_ns = (f64)node->end_ns - (f64)best_ns;
	rn->call_ns = LULL_T(wait_call_ns);
	if (lull_call_is_device_wide(lull_reader_string(b->s->reader, node->name, NULL)))
		rn->wait = LULL_REPLAY_DEVICE;
}

/* A copy that returned when it was done, or later, waited for itself. */
static void find_blocking(const struct build *b, const struct lull_node *node,
			  struct lull_replay_node *rn)
{
	const struct lull_unit *unit;

	if (node->unit == LULL_NONE)
		return;
	unit = &b->s->units.at[node->unit];
	if (node->end_ns <= unit->begin_ns + (unit->end_ns - unit->begin_ns) / 2)
		return;
	rn->wait = LULL_REPLAY_OWN;
	rn->return_ns = (f64)node->end_ns - (f64)unit->end_ns;
	rn->call_ns = 0; /* the end of the copy decides */
}

/* Time of [from, to) in operators of each kind, and how many events begin there. */
static void look_at_gap(const struct build *b, const struct lull_node *node, u64 from_ns, u64 to_ns,
			struct lull_replay_node *rn)
{
	const struct lull_host *h = &b->s->host;
	const struct lull_leaf *leaves = h->leaves.at;
	const struct lull_host_event *events = h->events.at;
	u32 leaf = lull_host_leaf(h, node->lane, from_ns);
	size_t i = leaf == LULL_NONE ? 0 : leaf;
	u32 n_events = 0;

	if (leaf == LULL_NONE)
		return;
	for (; i < h->leaves.n && leaves[i].lane == node->lane && leaves[i].begin_ns < to_ns; i++) {
		u64 end_ns = i + 1 < h->leaves.n && leaves[i + 1].lane == node->lane
				     ? leaves[i + 1].begin_ns
				     : to_ns;
		u64 begin_ns = leaves[i].begin_ns > from_ns ? leaves[i].begin_ns : from_ns;
		f64 ns = (f64)((end_ns < to_ns ? end_ns : to_ns) - begin_ns);

		if (leaves[i].event == LULL_NONE)
			continue;
		n_events += events[leaves[i].event].begin_ns == leaves[i].begin_ns &&
			    leaves[i].begin_ns >= from_ns;
		rn->sync_ns += events[leaves[i].event].inside & LULL_IN_SYNC ? ns : 0;
		rn->alloc_ns += events[leaves[i].event].inside & LULL_IN_ALLOC ? ns : 0;
	}
	rn->over_ns += n_events * b->per_event_ns;
}

/* The queue was full: the call waited for room, and will again. */
static bool was_full(const struct build *b, const struct lull_node *node)
{
	return b->n_enqueued >= QUEUE && b->ring[b->n_enqueued % QUEUE] > node->begin_ns;
}

/* Waits for the lock that are too short to have a slice of their own. */
static f64 lock_ns(const struct build *b, const struct lull_node *node, u64 from_ns, u64 to_ns)
{
	const struct lull_host *h = &b->s->host;
	const struct lull_host_pause *at = h->pauses.at;
	f64 sum = 0;

	for (size_t i = lull_host_pause_at(h, node->lane, from_ns);
	     node->slice == LULL_NONE && i < h->pauses.n && at[i].lane == node->lane &&
	     at[i].begin_ns < to_ns;
	     i++) {
		struct lull_span part = { at[i].begin_ns, at[i].end_ns };

		part = lull_span_cut(part, from_ns, to_ns);
		sum += at[i].kind == LULL_HOST_GIL ? (f64)(part.to_ns - part.from_ns) : 0;
	}
	return sum;
}

/*
 * A thread beside the first one that has nothing to do waits until that one gives it something:
 * such a gap is not its own time. It is one if nothing was seen in most of it, or a wait for a
 * thread.
 */
static bool is_waiting(const struct lull_subject *s, u32 node, u64 gap_ns)
{
	const struct lull_slice *at = s->slices.at;
	const struct lull_host_event *events = s->host.events.at;
	u64 sum = 0;

	for (size_t i = s->chain.nodes[node].slice;
	     i != LULL_NONE && i < s->slices.n && at[i].node == node; i++) {
		bool waits =
			at[i].event != LULL_NONE && (events[at[i].event].inside & LULL_IN_WAIT);

		sum += !at[i].is_seen || waits ? at[i].to_ns - at[i].from_ns : 0;
	}
	return sum * 2 > gap_ns;
}

/* Tie a thread that waited for the first one to that one's last call. */
static void tie(struct build *b, u32 node_ix, u64 from_ns, struct lull_replay_node *rn)
{
	const struct lull_node *nodes = b->s->chain.nodes, *node = &nodes[node_ix];

	if (!node->chain || b->first == LULL_NONE || nodes[b->first].begin_ns < from_ns ||
	    !is_waiting(b->s, node_ix, node->begin_ns - from_ns))
		return;
	rn->is_after = true;
	rn->after_ns = (f64)(node->begin_ns - nodes[b->first].begin_ns);
}

static void mark_loop(struct build *b, struct lull_replay_node *nodes, u32 ix)
{
	bool is_near = b->last_wait != LULL_NONE && ix - b->last_wait <= LULL_TN(loop_calls);

	if (nodes[ix].kind != LULL_KIND_OF_SYNC || (nodes[ix].flags & LULL_NODE_OWNED))
		return;
	b->n_loop = is_near ? b->n_loop + 1 : 1;
	/* Rounds are numbered once there are enough; the first ones afterwards. */
	for (u32 i = is_near ? b->last_wait + 1 : ix; i <= ix; i++)
		nodes[i].loop = (u16)(b->n_loop < UINT16_MAX ? b->n_loop : UINT16_MAX);
	b->last_wait = ix;
}

/* Runs that turned out to be too short are no loops. */
static void drop_short_loops(struct lull_replay_node *nodes, u32 n)
{
	for (u32 i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && nodes[j].loop >= nodes[j - 1].loop && nodes[j].loop; j++)
			;
		if (nodes[j - 1].loop >= LULL_TN(loop_rounds))
			continue;
		for (u32 k = i; k < j; k++)
			nodes[k].loop = 0;
	}
}

/*
 * Where the gap before a call begins. A thread that made its last call before these steps did not
 * wait in them since then.
 */
static u64 begin_of_gap(const struct build *b, u32 node_ix)
{
	u64 begin_ns = b->s->chain.nodes[node_ix].begin_ns;
	u64 from_ns = lull_chain_gap_ns(&b->s->chain, node_ix);

	from_ns = from_ns > b->begin_ns ? from_ns : b->begin_ns;
	return from_ns < begin_ns ? from_ns : begin_ns;
}

static void add_node(struct build *b, u32 node_ix)
{
	const struct lull_subject *s = b->s;
	const struct lull_node *node = &s->chain.nodes[node_ix];
	u64 from_ns = begin_of_gap(b, node_ix);
	u32 event = lull_host_at(&s->host, node->lane, node->begin_ns);
	struct lull_replay_node *rn = lull_vec_push(&b->p->nodes);
	bool is_later = false;

	/* A loop that waits in each round is inside a step: steps that end with a wait are none. */
	if (node->round != b->round)
		b->last_wait = LULL_NONE;
	b->round = node->round;
	*rn = (struct lull_replay_node){
		.gap_ns = (f64)(node->begin_ns - from_ns),
		.call_ns = (f64)(node->end_ns - node->begin_ns),
		.over_ns = b->per_call_ns,
		.node = node_ix,
		.op = (u32)b->p->ops.n,
		.kind = node->kind,
		.flags = node->flags,
		.chain = node->chain,
		.inside =
			event == LULL_NONE
				? 0
				: ((const struct lull_host_event *)s->host.events.at)[event].inside,
	};
	tie(b, node_ix, from_ns, rn);
	if (!node->chain)
		b->first = node_ix;
	look_at_gap(b, node, from_ns, node->begin_ns, rn);
	rn->gil_ns = lock_ns(b, node, from_ns, node->begin_ns);
	if (node->kind == LULL_KIND_OF_SYNC || node->kind == LULL_KIND_OF_ALLOC)
		find_awaited(b, node, rn);
	else if (node->kind == LULL_KIND_OF_COPY)
		find_blocking(b, node, rn);
	else if (was_full(b, node) && rn->call_ns > b->p->call_ns)
		rn->call_ns = b->p->call_ns;
	for (u32 u = node->unit; u != LULL_NONE; u = s->units.next[u], is_later = true) {
		add_op(b, node, u, is_later);
		rn->n_ops++;
	}
	mark_loop(b, b->p->nodes.at, (u32)b->p->nodes.n - 1);
}

/* ---- the sweeps ---- */

/* Visit the nodes of the stretch, of all chains by time. */
static void sweep(struct build *b, void (*visit)(struct build *b, u32 node))
{
	const struct lull_chain *c = &b->s->chain;
	u32 at[8], last = b->p->first_round + b->p->n_rounds;

	memcpy(at, c->first, sizeof(at));
	for (;;) {
		u32 best = LULL_NONE;

		for (u32 k = 0; k < c->n_chains; k++) {
			while (at[k] < c->first[k + 1] &&
			       (c->nodes[at[k]].round == LULL_NONE ||
				c->nodes[at[k]].round < b->p->first_round))
				at[k]++;
			if (at[k] < c->first[k + 1] && c->nodes[at[k]].round < last &&
			    (best == LULL_NONE ||
			     c->nodes[at[k]].begin_ns < c->nodes[at[best]].begin_ns))
				best = k;
		}
		if (best == LULL_NONE)
			return;
		visit(b, at[best]++);
	}
}

static void clear_streams(struct build *b)
{
	for (size_t i = 0; i < MAX_STREAMS; i++)
		b->streams[i] = (struct stream){ 0, LULL_NONE };
}

static void measure_node(struct build *b, u32 node_ix)
{
	const struct lull_node *node = &b->s->chain.nodes[node_ix];

	for (u32 u = node->unit; u != LULL_NONE; u = b->s->units.next[u]) {
		const struct lull_unit *unit = &b->s->units.at[u];

		if (u == node->unit)
			measure_unit(b, node, unit);
		if (unit->end_ns > b->streams[unit->stream].end_ns)
			b->streams[unit->stream] = (struct stream){ unit->end_ns, 0 };
	}
	if (node->kind == LULL_KIND_OF_LAUNCH)
		keep(&b->calls, (f64)(node->end_ns - node->begin_ns));
}

static void mark_starts(struct lull_replay *p)
{
	struct lull_replay_node *nodes = p->nodes.at;
	const struct lull_node *all = p->subject->chain.nodes;
	u32 round = LULL_NONE;

	for (size_t i = 0; i < p->nodes.n; i++) {
		nodes[i].starts = all[nodes[i].node].round != round;
		round = all[nodes[i].node].round;
	}
}

void lull_replay_build(struct lull_replay *p, const struct lull_subject *s)
{
	struct build *b = lull_alloc(1, sizeof(*b));
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(s->reader, LULL_TABLE_process, &n);
	bool is_native = processes[s->process - 1].has_agent;

	b->p = p;
	b->s = s;
	b->last_wait = b->round = b->first = LULL_NONE;
	b->per_call_ns = is_native ? LULL_T(native_call_ns) : LULL_T(foreign_call_ns);
	p->over_ns = is_native ? LULL_T(native_launch_ns) : 0;
	b->per_event_ns = is_native ? LULL_T(native_event_ns) : LULL_T(foreign_event_ns);
	b->streams = lull_alloc(MAX_STREAMS, sizeof(*b->streams));
	lull_vec_init(&b->launch, sizeof(f64));
	lull_vec_init(&b->next, sizeof(f64));
	lull_vec_init(&b->calls, sizeof(f64));
	pick_rounds(b);
	clear_streams(b);
	sweep(b, measure_node);
	p->launch_ns = median(&b->launch, LULL_T(launch_ns));
	p->launch_ns = p->launch_ns > LULL_T(launch_max_ns) ? LULL_T(launch_max_ns) : p->launch_ns;
	p->next_ns = median(&b->next, LULL_T(next_ns));
	p->call_ns = median(&b->calls, LULL_T(launch_ns));
	clear_streams(b);
	sweep(b, add_node);
	drop_short_loops(p->nodes.at, (u32)p->nodes.n);
	mark_starts(p);
	lull_replay_find_cold(p);
	lull_replay_find_warm(p);
	lull_replay_find_update(p);
	lull_vec_release(&b->launch);
	lull_vec_release(&b->next);
	lull_vec_release(&b->calls);
	free(b->streams);
	free(b);
}
