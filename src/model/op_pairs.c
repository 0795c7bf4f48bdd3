#include "model/op_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"

/* A forward operator that may have a backward function. */
struct forward {
	i64 sequence;
	u64 start_ns;
	u32 process, lane;
	u32 number; /* of the node */
	u32 unused;
};

struct finder {
	const struct lull_op_node *nodes;
	size_t n_nodes;
	const struct lull_lane_row *lanes;
	struct lull_vec forwards; /* struct forward by process, sequence, start */
	struct lull_map lane_of;  /* process and forward_tid to lane */
};

static u32 process_of(const struct finder *f, u32 lane)
{
	return lane ? f->lanes[lane - 1].process : 0;
}

static int by_sequence(const void *a, const void *b)
{
	const struct forward *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static bool is_forward(const struct lull_op_node *node)
{
	return node->kind == LULL_OP_OPERATOR && !node->is_backward && node->sequence >= 0 &&
	       !node->forward_tid;
}

/* The outermost one of its number: what the engine calls, with the function itself inside. */
static bool is_backward(const struct finder *f, const struct lull_op_node *node)
{
	const struct lull_op_node *outer;

	if (!node->is_backward || node->sequence < 0 || !node->forward_tid)
		return false;
	if (!node->parent)
		return true;
	outer = &f->nodes[node->parent - 1];
	return !outer->is_backward || outer->sequence != node->sequence ||
	       outer->forward_tid != node->forward_tid;
}

static void collect(struct finder *f)
{
	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct lull_op_node *node = &f->nodes[i];

		if (!is_forward(node))
			continue;
		*(struct forward *)lull_vec_push(&f->forwards) = (struct forward){
			.sequence = node->sequence,
			.start_ns = node->start_ns,
			.process = process_of(f, node->lane),
			.lane = node->lane,
			.number = (u32)i + 1,
		};
	}
	if (f->forwards.n)
		lull_sort(f->forwards.at, f->forwards.n, sizeof(struct forward), by_sequence);
}

/* The first forward operator of this process and number, or what comes after. */
static size_t first_of(const struct finder *f, u32 process, i64 sequence)
{
	const struct forward *all = f->forwards.at;
	size_t low = 0, high = f->forwards.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all[mid].process < process ||
		    (all[mid].process == process && all[mid].sequence < sequence))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Those of its number that began before a backward function: [*from, the result). */
static size_t candidates(const struct finder *f, const struct lull_op_node *node, size_t *from)
{
	const struct forward *all = f->forwards.at;
	u32 process = process_of(f, node->lane);
	size_t ix = *from = first_of(f, process, node->sequence);

	while (ix < f->forwards.n && all[ix].process == process &&
	       all[ix].sequence == node->sequence && all[ix].start_ns <= node->start_ns)
		ix++;
	return ix;
}

static u64 thread_key(u32 process, u64 forward_tid)
{
	return lull_hash_mix(process + 1, forward_tid);
}

/* How many numbers of a forward thread, as the framework calls it, this lane has. */
struct claim {
	u64 forward_tid;
	u32 process, lane;
	u64 n_votes;
};

/* Each lane with the number of a backward function gets a vote. */
static void vote(const struct finder *f, const struct lull_op_node *node, struct lull_map *ixs,
		 struct lull_vec *claims)
{
	const struct forward *all = f->forwards.at;
	size_t from, to = candidates(f, node, &from);
	u32 process = process_of(f, node->lane), last = 0;

	for (size_t i = from; i < to; i++) {
		u64 key = lull_hash_mix(thread_key(process, node->forward_tid), all[i].lane);
		struct claim *claim;
		bool is_new;
		u32 *ix;

		/* Operators of the same number follow each other, one inside the other. */
		if (all[i].lane == last)
			continue;
		last = all[i].lane;
		ix = lull_map_add(ixs, key, &is_new);
		if (is_new) {
			*ix = (u32)claims->n;
			claim = lull_vec_push(claims);
			*claim = (struct claim){ node->forward_tid, process, last, 0 };
		}
		claim = lull_vec_get(claims, *ix);
		/* The thread's own id is better than any vote. */
		claim->n_votes += f->lanes[last - 1].tid == node->forward_tid ? 1ULL << 32 : 1;
	}
}

static int by_votes(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->n_votes != y->n_votes)
		return x->n_votes > y->n_votes ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* The most votes first; a lane is the thread of one only, as long as there are others. */
static void choose_lanes(struct finder *f, struct lull_vec *claims)
{
	const struct claim *claim = claims->at;
	struct lull_map taken;

	lull_map_init(&taken);
	if (claims->n)
		lull_sort(claims->at, claims->n, sizeof(*claim), by_votes);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < claims->n; i++) {
			u64 key = thread_key(claim[i].process, claim[i].forward_tid);

			if (lull_map_find(&f->lane_of, key) ||
			    (!pass && lull_map_find(&taken, claim[i].lane)))
				continue;
			*lull_map_add(&f->lane_of, key, NULL) = claim[i].lane;
			lull_map_add(&taken, claim[i].lane, NULL);
		}
	}
	lull_map_release(&taken);
}

static void find_lanes(struct finder *f)
{
	struct lull_vec claims;
	struct lull_map ixs;

	lull_vec_init(&claims, sizeof(struct claim));
	lull_map_init(&ixs);
	for (size_t i = 0; i < f->n_nodes; i++)
		if (is_backward(f, &f->nodes[i]))
			vote(f, &f->nodes[i], &ixs, &claims);
	choose_lanes(f, &claims);
	lull_map_release(&ixs);
	lull_vec_release(&claims);
}

static u32 find_forward(const struct finder *f, const struct lull_op_node *node)
{
	const struct forward *all = f->forwards.at;
	const u32 *lane = lull_map_find(&f->lane_of,
					thread_key(process_of(f, node->lane), node->forward_tid));
	size_t from, to = candidates(f, node, &from);

	while (to > from) {
		u32 number = all[--to].number;

		if (!lane || all[to].lane != *lane)
			continue;
		while (f->nodes[number - 1].is_gone)
			number = f->nodes[number - 1].parent;
		return number;
	}
	return 0;
}

void lull_op_pairs_init(struct lull_op_pairs *p, const struct lull_ops *ops, struct lull_reader *r)
{
	struct finder f = { .nodes = ops->nodes.at, .n_nodes = ops->nodes.n };
	size_t n;

	*p = (struct lull_op_pairs){ 0 };
	lull_vec_init(&p->all, sizeof(struct lull_op_pair));
	f.lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	lull_vec_init(&f.forwards, sizeof(struct forward));
	lull_map_init(&f.lane_of);
	collect(&f);
	find_lanes(&f);
	for (u32 i = 0; i < f.n_nodes; i++) {
		struct lull_op_pair pair = { .backward = i + 1 };

		if (!is_backward(&f, &f.nodes[i]))
			continue;
		pair.forward = find_forward(&f, &f.nodes[i]);
		if (pair.forward)
			lull_vec_add(&p->all, &pair, 1);
		else
			p->n_unpaired++;
	}
	lull_map_release(&f.lane_of);
	lull_vec_release(&f.forwards);
}

void lull_op_pairs_release(struct lull_op_pairs *p)
{
	lull_vec_release(&p->all);
}

static int by_backward(const void *a, const void *b)
{
	const struct lull_op_pair *x = a, *y = b;

	return (x->backward > y->backward) - (x->backward < y->backward);
}

static const struct lull_op_pair *pair_of(const struct lull_op_pairs *p, u32 backward)
{
	struct lull_op_pair key = { .backward = backward };

	return p->all.n ? bsearch(&key, p->all.at, p->all.n, sizeof(key), by_backward) : NULL;
}

/* The function of the backward pass directly inside this node, which the engine called for it. */
static u32 called_in(const struct lull_ops *ops, u32 number)
{
	const struct lull_op_node *nodes = ops->nodes.at, *outer = &nodes[number - 1];

	for (u32 at = number + 1; at <= ops->nodes.n && nodes[at - 1].lane == outer->lane &&
				  nodes[at - 1].start_ns <= outer->end_ns;
	     at++)
		if (nodes[at - 1].parent == number && nodes[at - 1].is_backward)
			return at;
	return 0;
}

u32 lull_op_pairs_backward(const struct lull_op_pairs *p, const struct lull_ops *ops, u32 number)
{
	const struct lull_op_node *nodes = ops->nodes.at;

	for (; number; number = nodes[number - 1].parent) {
		const struct lull_op_node *node = &nodes[number - 1];
		u32 inside = 0;

		if (node->is_backward && pair_of(p, number))
			return number;
		/* What the engine does around a function, such as the sum for a bias, is its. */
		if (!node->parent && !node->is_backward && node->sequence < 0)
			inside = called_in(ops, number);
		if (inside && pair_of(p, inside))
			return inside;
	}
	return 0;
}

u32 lull_op_pairs_forward(const struct lull_op_pairs *p, const struct lull_ops *ops, u32 number)
{
	u32 backward = lull_op_pairs_backward(p, ops, number);

	return backward ? pair_of(p, backward)->forward : 0;
}

const char *lull_op_plain_name(const char *name)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";

	return strncmp(name, engine, sizeof(engine) - 1) ? name : name + sizeof(engine) - 1;
}
