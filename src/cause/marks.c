#include "cause/marks.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "cause/thresholds.h"

/* The last question of the loop that begins at `first`; calls that say nothing may lie between. */
static u32 last_question(const struct lull_subject *s, u32 first, u32 end)
{
	const struct lull_node *nodes = s->chain.nodes;
	u32 last = first;

	for (u32 i = first + 1; i < end; i++) {
		if (nodes[i].lane != nodes[first].lane ||
		    (nodes[i].kind != LULL_KIND_OF_QUERY && nodes[i].kind != LULL_KIND_OF_OTHER))
			break;
		last = nodes[i].kind == LULL_KIND_OF_QUERY ? i : last;
	}
	return last;
}

/* A loop that asks is two questions in a row and more, for longer than launches take. */
static void mark_polls(struct lull_subject *s, u32 from, u32 end)
{
	const struct lull_node *nodes = s->chain.nodes;
	u32 last;

	for (u32 i = from; i < end; i = last + 1) {
		last = i;
		if (nodes[i].kind != LULL_KIND_OF_QUERY)
			continue;
		last = last_question(s, i, end);
		if (last == i || nodes[last].end_ns - nodes[i].begin_ns < LULL_TN(gap_long_ns))
			continue;
		for (u32 k = i + 1; k <= last; k++)
			s->marks[k] |= LULL_MARK_POLL;
		s->marks[i] |= LULL_MARK_POLL_FIRST;
		s->marks[last] |= LULL_MARK_POLL_LAST;
	}
}

static bool is_small(const struct lull_subject *s, const struct lull_node *node, u8 direction)
{
	const struct lull_copy *copy;

	if (node->kind != LULL_KIND_OF_COPY || node->unit == LULL_NONE ||
	    s->units.at[node->unit].kind != LULL_UNIT_COPY)
		return false;
	copy = lull_units_copy(&s->units, &s->units.at[node->unit]);
	return copy->direction == direction && copy->size_bytes < LULL_TN(small_bytes) &&
	       !lull_copy_is_managed(copy);
}

/* A small copy to the host between two to the device: the values of a loop go there and back. */
static bool is_between(const struct lull_subject *s, u32 i, u32 from, u32 end)
{
	return i > from && i + 1 < end && is_small(s, &s->chain.nodes[i], LULL_COPY_OUT) &&
	       is_small(s, &s->chain.nodes[i - 1], LULL_COPY_IN) &&
	       is_small(s, &s->chain.nodes[i + 1], LULL_COPY_IN);
}

/* Small copies of [from, end), which is one step, if there are many. */
static void mark_small(struct lull_subject *s, u32 from, u32 end)
{
	const struct lull_node *nodes = s->chain.nodes;
	u64 n = 0;

	for (u32 i = from; i < end; i++)
		n += is_small(s, &nodes[i], LULL_COPY_IN);
	if (n < LULL_TN(small_count))
		return;
	for (u32 i = from; i < end; i++) {
		bool is_after = i > from && (s->marks[i - 1] & LULL_MARK_SMALL);

		if (is_small(s, &nodes[i], LULL_COPY_IN) || is_between(s, i, from, end) ||
		    (is_after && nodes[i].kind == LULL_KIND_OF_SYNC &&
		     (nodes[i].flags & LULL_NODE_OWNED)))
			s->marks[i] |= LULL_MARK_SMALL | (is_after ? LULL_MARK_SMALL_GAP : 0);
	}
}

/* A small copy to the host whose call does not wait for it: another thread does. */
static bool is_value(const struct lull_subject *s, const struct lull_unit *unit)
{
	const struct lull_node *node;

	if (unit->kind != LULL_UNIT_COPY || unit->node == LULL_NONE)
		return false;
	node = &s->chain.nodes[unit->node];
	return !(node->flags & (LULL_NODE_SYNCED | LULL_NODE_PAGED)) &&
	       is_small(s, node, LULL_COPY_OUT);
}

/*
 * Values that are copied to the host with nothing between them on the device, if a step has many:
 * each is asked for when the one before is there. Threads may take turns to copy them.
 */
static void mark_values(struct lull_subject *s)
{
	const struct lull_unit *at = s->units.at;
	u32 next;

	for (u32 i = 0; i < s->units.n; i = next) {
		u64 n = 0;

		for (next = i; next < s->units.n && at[next].round == at[i].round; next++)
			n += next > i && is_value(s, &at[next]) && is_value(s, &at[next - 1]);
		for (u32 k = i + 1; k < next && n >= LULL_TN(small_count); k++) {
			if (is_value(s, &at[k]) && is_value(s, &at[k - 1]))
				s->marks[at[k].node] |= LULL_MARK_VALUE;
		}
	}
}

void lull_subject_mark(struct lull_subject *s)
{
	const struct lull_chain *c = &s->chain;

	s->marks = lull_alloc(c->n + 1, sizeof(*s->marks));
	for (u32 k = 0; k < c->n_chains; k++) {
		u32 next;

		mark_polls(s, c->first[k], c->first[k + 1]);
		for (u32 i = c->first[k]; i < c->first[k + 1]; i = next) {
			for (next = i + 1;
			     next < c->first[k + 1] && c->nodes[next].round == c->nodes[i].round;
			     next++)
				;
			mark_small(s, i, next);
		}
	}
	mark_values(s);
}

/* ---- start-up ---- */

/* Calls that may start something up; the others wait, or take as long as their data. */
static bool may_start_up(const struct lull_node *node)
{
	return node->kind == LULL_KIND_OF_LAUNCH || node->kind == LULL_KIND_OF_ALLOC ||
	       node->kind == LULL_KIND_OF_MODULE || node->kind == LULL_KIND_OF_OTHER;
}

static u64 dur_of(const struct lull_node *node)
{
	return node->end_ns - node->begin_ns;
}

/* How long calls of this name usually take. */
static u64 usual_ns(const struct lull_chain *c, u32 name)
{
	u64 *durs = lull_alloc(c->n + 1, sizeof(*durs)), usual;
	size_t n = 0;

	for (u32 i = 0; i < c->n; i++) {
		if (c->nodes[i].name == name)
			durs[n++] = dur_of(&c->nodes[i]);
	}
	lull_sort_u64(durs, n);
	/* Of two the shorter had nothing to start up; what is called once happens once. */
	usual = n == 1 ? 0 : durs[(n - 1) / 2];
	free(durs);
	return usual;
}

void lull_subject_mark_start_up(struct lull_subject *s)
{
	const struct lull_chain *c = &s->chain;
	struct lull_map names; /* of calls, to 1 + the index in usual */
	struct lull_vec usual; /* u64 */

	lull_map_init(&names);
	lull_vec_init(&usual, sizeof(u64));
	for (u32 i = 0; i < c->n; i++) {
		const struct lull_node *node = &c->nodes[i];
		u32 *ix;

		if (!may_start_up(node) || dur_of(node) < LULL_TN(start_up_ns))
			continue;
		ix = lull_map_add(&names, node->name, NULL);
		if (!*ix) {
			*(u64 *)lull_vec_push(&usual) = usual_ns(c, node->name);
			*ix = (u32)usual.n;
		}
		if ((f64)dur_of(node) >= LULL_T(start_up_times) * (f64)((u64 *)usual.at)[*ix - 1])
			s->marks[i] |= LULL_MARK_START_UP;
	}
	lull_map_release(&names);
	lull_vec_release(&usual);
}
