#include "model/chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"
#include "model/link.h"
#include "model/runsort.h"
#include "model/span.h"
#include "model/window.h"

#define MAX_CHAINS ((u32)LULL_COUNT_OF(((struct lull_chain *)0)->first) - 1)

/* Threads that are compared with each other; calls of all others share the last chain. */
#define MAX_COMPARED 16

static u64 stack_key(u32 lane, u64 begin_ns)
{
	return begin_ns ^ (u64)lane << 48;
}

static void load(struct lull_chain *c, struct lull_reader *r, u32 process)
{
	static const char *const wanted[] = { "start_ns", "dur_ns",	 "lane",
					      "name",	  "correlation", "stack" };
	struct lull_span window = lull_window_of(r);
	struct lull_cuda_call_cols cols;
	struct lull_cursor cursor;
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	u64 n_rows = lull_reader_stats(r, LULL_TABLE_cuda_call).n_rows;

	c->nodes = lull_alloc(n_rows + 1, sizeof(*c->nodes));
	lull_cursor_init(&cursor, r, LULL_TABLE_cuda_call, window.from_ns, window.to_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&cursor, wanted[i]);
	while ((n = lull_cursor_next(&cursor, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i];

			if (!lane || lanes[lane - 1].process != process || c->n == LULL_NONE - 1 ||
			    cols.start_ns[i] < window.from_ns || cols.start_ns[i] >= window.to_ns)
				continue;
			c->nodes[c->n++] = (struct lull_node){
				.begin_ns = cols.start_ns[i],
				.end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]),
				.lane = lane,
				.name = cols.name[i],
				.unit = LULL_NONE,
				.round = cols.correlation[i], /* for now */
				.slice = LULL_NONE,
			};
			if (cols.stack[i])
				*lull_map_add(&c->stacks, stack_key(lane, cols.start_ns[i]), NULL) =
					cols.stack[i];
		}
	}
	lull_cursor_release(&cursor);
}

/*
 * A stream runs its work in order: what it runs before the first work whose call was recorded was
 * launched before the recording began. Nothing is missing there.
 */
static u64 count_earlier(const struct lull_units *units)
{
	u64 *waiting = lull_alloc(units->lanes.n + 1, sizeof(*waiting)), n = 0;
	bool *has_call = lull_alloc(units->lanes.n + 1, sizeof(*has_call));

	for (u32 i = 0; i < units->n; i++) {
		const struct lull_unit *unit = &units->at[i];

		if (has_call[unit->stream])
			continue;
		if (unit->node == LULL_NONE) {
			waiting[unit->stream]++;
		} else {
			has_call[unit->stream] = true;
			n += waiting[unit->stream];
		}
	}
	free(waiting);
	free(has_call);
	return n;
}

static struct lull_span span_of(const struct lull_node *node)
{
	return (struct lull_span){ node->begin_ns, node->end_ns };
}

/* Which call has which key. */
static void index_calls(struct lull_link_index *x, const struct lull_chain *c, u32 process)
{
	const struct lull_node *nodes = c->nodes;

	for (u32 i = 0; i < c->n; i++)
		lull_link_index_measure(x, lull_link_key(process, nodes[i].round));
	lull_link_index_settle(x);
	for (u32 i = 0; i < c->n; i++) {
		u32 *at = lull_link_index_add(x, lull_link_key(process, nodes[i].round));

		if (at &&
		    (!*at || lull_link_is_first(span_of(&nodes[i]), span_of(&nodes[*at - 1]))))
			*at = i + 1;
	}
}

/* Hang the units on their calls, the last one first, so that the lists come out in order. */
static void link_units(struct lull_chain *c, struct lull_units *units, struct lull_reader *r,
		       u32 process)
{
	struct lull_link_index x;

	lull_link_index_init(&x, r);
	index_calls(&x, c, process);
	for (u32 i = units->n; i-- > 0;) {
		struct lull_unit *unit = &units->at[i];
		const u32 *at = lull_link_index_find(&x, lull_link_key(process, unit->node));

		unit->node = at && *at ? *at - 1 : LULL_NONE;
		if (unit->node == LULL_NONE)
			continue;
		c->n_units_linked++;
		units->next[i] = c->nodes[unit->node].unit;
		c->nodes[unit->node].unit = i;
	}
	c->n_units_linked += count_earlier(units);
	lull_link_index_release(&x);
}

/* Calls of threads that start no work, and calls inside calls, are not looked at again. */
static void append_units(struct lull_node *to, const struct lull_node *from, u32 *next)
{
	u32 *tail = &to->unit;

	while (*tail != LULL_NONE)
		tail = &next[*tail];
	*tail = from->unit;
}

static void drop_some(struct lull_chain *c, const struct lull_units *units, struct lull_reader *r)
{
	size_t n_lanes = lull_reader_n_dim(r, LULL_TABLE_lane);
	u8 *starts = lull_alloc(n_lanes + 1, 1);
	u64 *end_ns = lull_alloc(n_lanes + 1, sizeof(*end_ns));
	u32 *outer = lull_alloc(n_lanes + 1, sizeof(*outer));
	u32 n = 0;

	for (u32 i = 0; i < c->n; i++)
		starts[c->nodes[i].lane] |= c->nodes[i].unit != LULL_NONE;
	for (u32 i = 0; i < c->n; i++) {
		struct lull_node node = c->nodes[i];

		if (!starts[node.lane])
			continue;
		if (node.end_ns <= end_ns[node.lane]) {
			append_units(&c->nodes[outer[node.lane]], &node, units->next);
			continue;
		}
		end_ns[node.lane] = node.end_ns;
		outer[node.lane] = n;
		c->nodes[n++] = node;
	}
	c->n = n;

	free(starts);
	free(end_ns);
	free(outer);
}

static void set_kinds(struct lull_chain *c, struct lull_reader *r)
{
	u32 last_name = 0, last_kind = lull_call_kind_of("");
	struct lull_map kinds;

	lull_map_init(&kinds);
	for (u32 i = 0; i < c->n; i++) {
		struct lull_node *node = &c->nodes[i];

		/* Most calls have the name of the call before. */
		if (node->name != last_name) {
			bool is_new;
			u32 *kind = lull_map_add(&kinds, node->name, &is_new);

			if (is_new)
				*kind = lull_call_kind_of(lull_reader_string(r, node->name, NULL));
			last_name = node->name;
			last_kind = *kind;
		}
		node->kind = (u8)last_kind;
		node->round = LULL_NONE;
	}
	lull_map_release(&kinds);
}

/* ---- which threads take turns ---- */

struct thread {
	u32 lane;
	u64 busy_ns;
};

static int by_busy(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns < y->busy_ns ? 1 : -1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* Time in which calls of `lane` and calls of the chain both run; nodes are by time. */
static u64 overlap_ns(const struct lull_chain *c, u32 lane, u32 chain)
{
	u64 end_lane = 0, end_chain = 0, sum = 0;

	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];
		bool is_lane = node->lane == lane;
		u64 *own = is_lane ? &end_lane : &end_chain, other = is_lane ? end_chain : end_lane;

		if (!is_lane && c->chain_of_lane[node->lane] != chain + 1)
			continue;
		if (other > node->begin_ns)
			sum += (other < node->end_ns ? other : node->end_ns) - node->begin_ns;
		*own = *own > node->end_ns ? *own : node->end_ns;
	}
	return sum;
}

/* Give a thread the first chain it takes turns with, or one of its own. */
static void place(struct lull_chain *c, const struct thread *t)
{
	u32 chain = 0;

	while (chain < c->n_chains &&
	       (f64)overlap_ns(c, t->lane, chain) > LULL_L(turns) * (f64)t->busy_ns)
		chain++;
	if (chain == c->n_chains && c->n_chains < MAX_CHAINS)
		c->n_chains++;
	if (chain == c->n_chains)
		chain = c->n_chains - 1;
	c->chain_of_lane[t->lane] = (u8)(chain + 1);
}

static void find_chains(struct lull_chain *c, size_t n_lanes)
{
	struct thread *threads = lull_alloc(n_lanes + 1, sizeof(*threads));
	size_t n = 0;

	c->chain_of_lane = lull_alloc(n_lanes + 1, 1);
	for (u32 i = 0; i < c->n; i++) {
		threads[c->nodes[i].lane].lane = c->nodes[i].lane;
		threads[c->nodes[i].lane].busy_ns += c->nodes[i].end_ns - c->nodes[i].begin_ns;
	}
	for (size_t i = 1; i <= n_lanes; i++) {
		if (threads[i].lane)
			threads[n++] = threads[i];
	}
	lull_sort(threads, n, sizeof(*threads), by_busy);
	for (size_t i = 0; i < n; i++) {
		if (i < MAX_COMPARED)
			place(c, &threads[i]);
		else
			c->chain_of_lane[threads[i].lane] = (u8)c->n_chains;
	}
	free(threads);
}

/* By chain, then time; each call begins where the one before it ended, if not later. */
static void lay_out(struct lull_chain *c, struct lull_units *units)
{
	struct lull_node *from = c->nodes;
	u32 counts[9] = { 0 }, at[9] = { 0 };

	for (u32 i = 0; i < c->n; i++) {
		from[i].chain = (u8)(c->chain_of_lane[from[i].lane] - 1);
		counts[from[i].chain]++;
	}
	for (u32 k = 0; k < c->n_chains; k++) {
		at[k] = c->first[k];
		c->first[k + 1] = c->first[k] + counts[k];
	}
	if (c->n_chains > 1) {
		c->nodes = lull_alloc(c->n + 1, sizeof(*c->nodes));
		for (u32 i = 0; i < c->n; i++)
			c->nodes[at[from[i].chain]++] = from[i];
		free(from);
	}
	for (u32 i = 0; i < units->n; i++)
		units->at[i].node = LULL_NONE;
	for (u32 i = 0; i < c->n; i++) {
		struct lull_node *node = &c->nodes[i];

		if (i == c->first[node->chain]) {
			node->flags |= LULL_NODE_FIRST;
		} else {
			u64 end_ns = node[-1].end_ns;

			node->begin_ns = node->begin_ns > end_ns ? node->begin_ns : end_ns;
			node->end_ns = node->end_ns > end_ns ? node->end_ns : end_ns;
		}
		for (u32 u = node->unit; u != LULL_NONE; u = units->next[u])
			units->at[u].node = i;
	}
}

/* ---- what copies are ---- */

static u8 copy_flags(const struct lull_units *units, u32 first)
{
	u8 flags = 0;

	for (u32 u = first; u != LULL_NONE; u = units->next[u]) {
		const struct lull_copy *copy;

		if (units->at[u].kind != LULL_UNIT_COPY)
			continue;
		copy = lull_units_copy(units, &units->at[u]);
		flags |= lull_copy_is_pageable(copy) ? LULL_NODE_PAGED : 0;
		flags |= lull_copy_is_managed(copy) ? LULL_NODE_MANAGED : 0;
		flags |= copy->direction == LULL_COPY_OUT ? LULL_NODE_OUT : 0;
		if (copy->direction == LULL_COPY_IN && copy->size_bytes >= LULL_LN(batch_bytes))
			flags |= LULL_NODE_IN;
	}
	return flags;
}

static void set_flags(struct lull_chain *c, const struct lull_units *units)
{
	for (u32 i = 0; i < c->n; i++) {
		struct lull_node *node = &c->nodes[i], *next = node + 1;

		if (node->kind != LULL_KIND_OF_COPY)
			continue;
		node->flags |= copy_flags(units, node->unit);
		while (next < c->nodes + c->n && next->chain == node->chain &&
		       next->kind != LULL_KIND_OF_SYNC && next->kind == LULL_KIND_OF_OTHER)
			next++;
		if (next == c->nodes + c->n || next->chain != node->chain ||
		    next->lane != node->lane || next->kind != LULL_KIND_OF_SYNC)
			continue;
		node->flags |= LULL_NODE_SYNCED;
		/* A framework waits after a copy from pageable memory since that is pageable. */
		if ((node->flags & LULL_NODE_PAGED) && !(node->flags & LULL_NODE_OUT))
			next->flags |= LULL_NODE_OWNED;
	}
}

void lull_chain_init(struct lull_chain *c, struct lull_reader *r, u32 process,
		     struct lull_units *units)
{
	memset(c, 0, sizeof(*c));
	lull_map_init(&c->stacks);
	load(c, r, process);
	lull_runsort(c->nodes, c->n, sizeof(*c->nodes));
	link_units(c, units, r, process);
	drop_some(c, units, r);
	set_kinds(c, r);
	find_chains(c, lull_reader_n_dim(r, LULL_TABLE_lane));
	lay_out(c, units);
	set_flags(c, units);
}

void lull_chain_release(struct lull_chain *c)
{
	free(c->nodes);
	free(c->chain_of_lane);
	lull_map_release(&c->stacks);
}

u32 lull_chain_stack(const struct lull_chain *c, u32 node)
{
	const u32 *stack =
		lull_map_find(&c->stacks, stack_key(c->nodes[node].lane, c->nodes[node].begin_ns));

	return stack ? *stack : 0;
}

u32 lull_chain_find(const struct lull_chain *c, u32 chain, u64 at_ns)
{
	u32 low = c->first[chain], high = c->first[chain + 1];

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (c->nodes[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
