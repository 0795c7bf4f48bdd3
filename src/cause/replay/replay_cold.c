/*
 * replay_cold - what a wait for Python's lock, and a pause of any kind, costs beyond itself.
 *
 * A thread that slept comes back to cold caches and a slow clock. Of a loop that waited ten times a
 * step, calls within 100 us after a wait took 1.7 to 1.9 times as long as without it, those within
 * 400 us 1.3 times, later ones all the same. So a call that comes shortly after a wait takes, when
 * the wait is gone, what it takes at the same place in steps in which no wait came before it.
 */
#include <stdlib.h>

#include "base/sort.h"
#include "cause/cause.h"
#include "cause/position.h"
#include "cause/replay/replay_int.h"
#include "cause/thresholds.h"

/* A call at its place. */
struct visit {
	u64 position;
	u32 node; /* of the replay */
	bool is_cold;
	f64 gap_ns; /* without waits */
	f64 call_ns;
};

/* Waits for the lock in [from_ns, to_ns) and whether one ended shortly before to_ns. */
static f64 waits(const struct lull_host *h, u32 lane, u64 from_ns, u64 to_ns, bool *is_cold)
{
	u64 since_ns = to_ns > LULL_TN(cold_ns) ? to_ns - LULL_TN(cold_ns) : 0;
	const struct lull_host_pause *at = h->pauses.at;
	f64 sum = 0;

	*is_cold = false;
	since_ns = since_ns < from_ns ? since_ns : from_ns;
	for (size_t i = lull_host_pause_at(h, lane, since_ns);
	     i < h->pauses.n && at[i].lane == lane && at[i].begin_ns < to_ns; i++) {
		struct lull_span part = { at[i].begin_ns, at[i].end_ns };

		if (at[i].kind != LULL_HOST_GIL)
			continue;
		*is_cold |= at[i].end_ns + LULL_TN(cold_ns) > to_ns;
		part = lull_span_cut(part, from_ns, to_ns);
		sum += (f64)(part.to_ns - part.from_ns);
	}
	return sum;
}

static int by_position(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	return x->is_cold - y->is_cold;
}

static f64 median(f64 *at, size_t n)
{
	lull_sort_f64(at, n);
	return at[n / 2];
}

static f64 beyond(f64 ns, f64 usual_ns)
{
	return ns > usual_ns ? ns - usual_ns : 0;
}

/* The visits of one place, the warm ones first. */
static void compare(struct lull_replay_node *nodes, const struct visit *visits, size_t n,
		    struct lull_vec *room)
{
	size_t n_warm = 0;
	f64 gap_ns, call_ns, *warm;

	while (n_warm < n && !visits[n_warm].is_cold)
		n_warm++;
	if (n_warm < LULL_TN(few_steps) || n_warm == n)
		return;
	room->n = 0;
	warm = lull_vec_extend(room, 2 * n_warm);
	for (size_t i = 0; i < n_warm; i++) {
		warm[i] = visits[i].gap_ns;
		warm[n_warm + i] = visits[i].call_ns;
	}
	gap_ns = median(warm, n_warm);
	call_ns = median(warm + n_warm, n_warm);
	for (size_t i = n_warm; i < n; i++) {
		struct lull_replay_node *node = &nodes[visits[i].node];

		node->cold_gap_ns = beyond(visits[i].gap_ns, gap_ns);
		if (node->wait == LULL_REPLAY_RUNS)
			node->cold_call_ns = beyond(visits[i].call_ns, call_ns);
	}
}

static void collect(struct lull_vec *visits, struct lull_replay *p)
{
	const struct lull_subject *s = p->subject;
	struct lull_replay_node *nodes = p->nodes.at;
	struct lull_positions positions;

	lull_positions_init(&positions, s);
	for (u32 i = 0; i < p->nodes.n; i++) {
		const struct lull_node *node = &s->chain.nodes[nodes[i].node];
		struct visit *visit = lull_vec_push(visits);
		u64 from_ns = lull_chain_gap_ns(&s->chain, nodes[i].node);

		visit->position = lull_position_of(&positions, node);
		visit->node = i;
		visit->call_ns = nodes[i].call_ns;
		visit->gap_ns =
			(f64)(node->begin_ns - from_ns) -
			waits(&s->host, node->lane, from_ns, node->begin_ns, &visit->is_cold);
	}
	lull_positions_release(&positions);
}

void lull_replay_find_cold(struct lull_replay *p)
{
	struct lull_vec visits, room;
	const struct visit *at;

	if (!p->subject->host.has_gil)
		return;
	lull_vec_init(&visits, sizeof(struct visit));
	lull_vec_init(&room, sizeof(f64));
	collect(&visits, p);
	if (visits.n)
		lull_sort(visits.at, visits.n, sizeof(*at), by_position);
	at = visits.at;
	for (size_t i = 0, j; i < visits.n; i = j) {
		for (j = i; j < visits.n && at[j].position == at[i].position; j++)
			;
		compare(p->nodes.at, &at[i], j - i, &room);
	}
	lull_vec_release(&visits);
	lull_vec_release(&room);
}

/*
 * ---- after any pause ----
 *
 * A thread that comes back from loading, writing or waiting finds caches that are full of something
 * else. A launching call does the same each time, so it tells: in loops that do nothing but launch,
 * the mean is 1.2 to 1.35 times the fastest tenth, after pauses of milliseconds 1.6 to 2.4 times.
 * What is above the usual is gone with the pauses, and the rest of the way to a launch is as slow.
 */

/* Launching calls that are looked at: enough for a mean, few enough to sort. */
#define MOST_CALLS 20000

struct call {
	u32 name;
	f64 ns;
};

static int by_name(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static void collect_calls(struct lull_vec *calls, const struct lull_replay *p)
{
	const struct lull_replay_node *nodes = p->nodes.at;

	for (size_t i = 0; i < p->nodes.n && calls->n < MOST_CALLS; i++) {
		struct call *call;

		if (nodes[i].kind != LULL_KIND_OF_LAUNCH)
			continue;
		call = lull_vec_push(calls);
		call->name = p->subject->chain.nodes[nodes[i].node].name;
		call->ns = nodes[i].call_ns;
	}
}

void lull_replay_find_warm(struct lull_replay *p)
{
	struct lull_vec calls;
	const struct call *at;
	f64 sum = 0, fast = 0;

	p->warm = 1;
	lull_vec_init(&calls, sizeof(struct call));
	collect_calls(&calls, p);
	if (calls.n)
		lull_sort(calls.at, calls.n, sizeof(*at), by_name);
	at = calls.at;
	for (size_t i = 0, j; i < calls.n; i = j) {
		f64 tenth;

		for (j = i; j < calls.n && at[j].name == at[i].name; j++)
			;
		tenth = at[i + (j - i) / 10].ns;
		for (size_t k = i; j - i >= LULL_TN(delays_count) && k < j; k++) {
			/* What is far longer waited for something. */
			sum += at[k].ns < LULL_T(warm_far) * tenth ? at[k].ns
								   : LULL_T(warm_far) * tenth;
			fast += tenth;
		}
	}
	lull_vec_release(&calls);
	if (sum > LULL_T(warm_usual) * fast)
		p->warm = LULL_T(warm_usual) * fast / sum;
	/* Not below the best case of the range. */
	p->warm = p->warm > LULL_T(host_good) ? p->warm : LULL_T(host_good);
}
