/*
 * replay_update - which calls of a step are the optimizer's, where no range says so.
 *
 * Stacks of Python are sampled 100 times a second: too rarely to say it of each step, but all steps
 * together cover one. A step is cut into parts of as many calls each; a part is the optimizer's if
 * most samples in it are inside its code. Parts without samples are what the one before them is.
 */
#include "cause/location.h"
#include "cause/replay/replay_int.h"
#include "cause/thresholds.h"

#define PARTS 64

struct votes {
	u32 n[PARTS];
	u32 n_update[PARTS];
	u32 sum;
};

/* The part of its step in which a call is. */
static u32 part_of(u32 ix, u32 first, u32 end)
{
	return (u32)((u64)(ix - first) * PARTS / (end - first));
}

/* The first call at or after a moment. */
static u32 find_node(const struct lull_replay *p, u64 at_ns)
{
	const struct lull_replay_node *nodes = p->nodes.at;
	const struct lull_node *all = p->subject->chain.nodes;
	u32 low = 0, high = (u32)p->nodes.n;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (all[nodes[mid].node].begin_ns < at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The calls of the step of call ix: [*first, *end). */
static void find_step(const struct lull_replay *p, u32 ix, u32 *first, u32 *end)
{
	const struct lull_replay_node *nodes = p->nodes.at;

	for (*first = ix; *first && !nodes[*first].starts; (*first)--)
		;
	for (*end = ix + 1; *end < p->nodes.n && !nodes[*end].starts; (*end)++)
		;
}

static void count_samples(struct votes *v, const struct lull_replay *p)
{
	const struct lull_subject *s = p->subject;
	const struct lull_host_sample *at = s->host.samples.at;
	const struct lull_replay_node *nodes = p->nodes.at;

	for (size_t i = 0; i < s->host.samples.n; i++) {
		u32 ix = at[i].is_python ? find_node(p, at[i].at_ns) : (u32)p->nodes.n;
		u32 first, end, part;

		if (ix == p->nodes.n || s->chain.nodes[nodes[ix].node].lane != at[i].lane)
			continue;
		find_step(p, ix, &first, &end);
		part = part_of(ix, first, end);
		v->n[part]++;
		v->n_update[part] += lull_location_is_update(s->reader, at[i].stack);
		v->sum++;
	}
}

/* Whether each part is the optimizer's. */
static void decide(const struct votes *v, bool *is_update)
{
	bool last = false;

	for (u32 i = 0; i < PARTS; i++) {
		if (v->n[i])
			last = v->n_update[i] * 2 > v->n[i];
		is_update[i] = last;
	}
}

void lull_replay_find_update(struct lull_replay *p)
{
	struct lull_replay_node *nodes = p->nodes.at;
	struct votes v = { 0 };
	bool is_update[PARTS];
	u32 first, end;

	for (size_t i = 0; i < p->nodes.n; i++) {
		if (nodes[i].inside & LULL_IN_OPTIMIZER)
			return;
	}
	count_samples(&v, p);
	if (v.sum < LULL_TN(update_samples))
		return;
	decide(&v, is_update);
	for (u32 i = 0; i < p->nodes.n; i = end) {
		find_step(p, i, &first, &end);
		for (u32 k = first; k < end; k++) {
			if (is_update[part_of(k, first, end)])
				nodes[k].inside |= LULL_IN_OPTIMIZER;
		}
	}
}
