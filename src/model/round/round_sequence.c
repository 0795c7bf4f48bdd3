/* What the thread that launches most does, as a sequence of symbols. */
#include "model/round/round_sequence.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"

static u32 chain_to_look_at(const struct lull_chain *c)
{
	u32 best = 0, most = 0;

	for (u32 k = 0; c->n_chains > 1 && k < c->n_chains; k++) {
		u32 n = 0;

		for (u32 i = c->first[k]; i < c->first[k + 1]; i++)
			n += c->nodes[i].unit != LULL_NONE;
		/* The first chain is of the thread that starts; others have to be far larger. */
		if (!k || (f64)n > LULL_L(other_thread) * (f64)most) {
			best = k;
			most = n;
		}
	}
	return best;
}

/*
 * What a call started (`unit`) or does, as a key: kernels by name, copies by direction, waits by
 * call.
 */
static u64 key_of(const struct lull_sequence *q, const struct lull_node *node,
		  const struct lull_unit *unit, const struct lull_launch_row *launches,
		  struct lull_call_symbol *s)
{
	u64 key;

	if (!unit) {
		s->what = LULL_SEP_WAIT;
		return 1ull << 50 | node->name;
	}
	key = (u64)unit->kind << 40;
	s->what = LULL_SEP_LAUNCH;
	if (unit->kind == LULL_UNIT_COPY) {
		u8 direction = lull_units_copy(q->f->units, unit)->direction;

		s->what = direction == LULL_COPY_IN    ? LULL_SEP_COPY_IN
			  : direction == LULL_COPY_OUT ? LULL_SEP_WAIT
						       : LULL_SEP_OTHER;
		return key | direction;
	}
	s->is_update = unit->kind == LULL_UNIT_KERNEL && unit->class == LULL_KERNEL_OPTIMIZER;
	if (unit->kind != LULL_UNIT_MEMSET && unit->what)
		return key | launches[unit->what - 1].name;
	s->is_graph = unit->kind != LULL_UNIT_MEMSET;
	return key;
}

static bool is_long_gap(const struct lull_sequence *q, u32 node)
{
	const struct lull_chain *c = q->f->chain;

	return node > q->first && c->nodes[node].begin_ns - lull_chain_gap_ns(c, node) >= q->gap_ns;
}

/*
 * Whether long gaps are at one place of the program, between calls of the same kinds. A thread that
 * the system takes its CPU from has gaps wherever it happens to be.
 */
static bool have_place(struct lull_sequence *q)
{
	u32 n_gaps = 0, most = 0;
	struct lull_map counts;

	lull_map_init(&counts);
	for (u32 i = q->first + 1; i < q->last; i++) {
		u32 before = q->marks[i - 1 - q->first], after = q->marks[i - q->first], *count;
		bool is_new;

		if (!is_long_gap(q, i))
			continue;
		n_gaps++;
		count = lull_map_add(&counts, (u64)before << 32 | after, &is_new);
		*count = is_new ? 1 : *count + 1;
		if (*count <= most)
			continue;
		most = *count;
		q->is_gap_inside = before && before == after;
	}
	lull_map_release(&counts);
	return (f64)most >= LULL_L(gap_place) * (f64)n_gaps;
}

/*
 * Long gaps are a symbol, too, if they are few, clearly longer than the others, and where the loop
 * of the program has one.
 */
static void find_gaps(struct lull_sequence *q)
{
	const struct lull_chain *c = q->f->chain;
	u32 n = q->last - q->first, step = n / 65536 + 1;
	u64 *gaps_ns = lull_alloc(n / step + 2, sizeof(*gaps_ns)), n_long = 0;
	size_t n_gaps = 0;

	for (u32 i = q->first + 1; i < q->last; i += step)
		gaps_ns[n_gaps++] = c->nodes[i].begin_ns - lull_chain_gap_ns(c, i);
	q->gap = LULL_NONE;
	if (n_gaps) {
		lull_sort_u64(gaps_ns, n_gaps);
		q->gap_ns = (u64)(LULL_L(separating_times) * (f64)gaps_ns[n_gaps / 2]);
		if (q->gap_ns < LULL_LN(separating_ns))
			q->gap_ns = LULL_LN(separating_ns);
	}
	/* They are sorted, and a sample where there are many. */
	while (n_long < n_gaps && gaps_ns[n_gaps - n_long - 1] >= q->gap_ns)
		n_long++;
	n_long *= step;
	free(gaps_ns);
	if (n_long < LULL_LN(rounds_least) || (f64)n_long > LULL_L(separating_share) * (f64)n ||
	    !have_place(q))
		return;
	q->gap = (u32)q->all.n;
	*(struct lull_call_symbol *)lull_vec_push(&q->all) = (struct lull_call_symbol){
		.count = (u32)n_long, .node = LULL_NONE, .number = q->gap, .what = LULL_SEP_GAP
	};
}

/*
 * Calls of the C library between the calls of CUDA are symbols, too, of the call that follows: a
 * loop may read or write something in each round. Those inside a call of CUDA are its own.
 */
static void find_oscalls(struct lull_sequence *q, u32 chain)
{
	const struct lull_chain *c = q->f->chain;
	const struct lull_host_event *events = q->f->host->events.at;
	struct lull_map numbers;

	lull_map_init(&numbers);
	for (size_t i = 0; i < q->f->host->events.n; i++) {
		const struct lull_host_event *e = &events[i];
		u32 at, *number;
		bool is_new;

		if (e->kind != LULL_HOST_OSCALL || c->chain_of_lane[e->lane] != chain + 1)
			continue;
		at = lull_chain_find(c, chain, e->begin_ns);
		if (at >= q->last || c->nodes[at].begin_ns <= e->begin_ns)
			continue;
		number = lull_map_add(&numbers, e->ref, &is_new);
		if (is_new) {
			*number = (u32)q->all.n;
			*(struct lull_call_symbol *)lull_vec_push(&q->all) =
				(struct lull_call_symbol){ .string = e->ref,
							   .number = *number,
							   .what = LULL_SEP_OSCALL };
		}
		/* Several before one call of CUDA are one. */
		if (q->os[at - q->first] != *number + 1)
			((struct lull_call_symbol *)q->all.at)[*number].count++;
		q->os[at - q->first] = *number + 1;
	}
	lull_map_release(&numbers);
}

/* The number of what a node does; names of kernels are looked up once for each launch. */
static u32 number_of(struct lull_sequence *q, u32 at, struct lull_map *numbers, u32 *of_launch,
		     const struct lull_launch_row *rows)
{
	const struct lull_node *node = &q->f->chain->nodes[at];
	const struct lull_unit *unit =
		node->unit == LULL_NONE ? NULL : &q->f->units->at[node->unit];
	u32 *known = unit && unit->kind == LULL_UNIT_KERNEL ? &of_launch[unit->what] : NULL;
	struct lull_call_symbol s = { .node = at };
	u32 *number;
	bool is_new;

	if (known && *known)
		return *known - 1;
	number = lull_map_add(numbers, key_of(q, node, unit, rows, &s), &is_new);
	if (is_new) {
		s.number = *number = (u32)q->all.n;
		*(struct lull_call_symbol *)lull_vec_push(&q->all) = s;
	}
	if (known)
		*known = *number + 1;
	return *number;
}

static void read_symbols(struct lull_sequence *q)
{
	size_t n_rows;
	const struct lull_launch_row *rows =
		lull_reader_dim(q->f->reader, LULL_TABLE_launch, &n_rows);
	u32 *of_launch = lull_alloc(n_rows + 1, sizeof(*of_launch));
	struct lull_map numbers;

	lull_map_init(&numbers);
	for (u32 i = q->first; i < q->last; i++) {
		u32 number;

		if (q->f->buckets[i] == LULL_LOOP_NO_ITEM)
			continue;
		number = number_of(q, i, &numbers, of_launch, rows);
		((struct lull_call_symbol *)q->all.at)[number].count++;
		q->marks[i - q->first] = number + 1;
		if (q->f->chain->nodes[i].unit == LULL_NONE)
			continue;
		q->nodes[q->n] = i;
		q->launches[q->n++] = number;
	}
	lull_map_release(&numbers);
	free(of_launch);
}

void lull_sequence_init(struct lull_sequence *q, struct lull_loop_finder *f)
{
	u32 chain = chain_to_look_at(f->chain), n;

	*q = (struct lull_sequence){ .f = f };
	q->first = f->chain->n_chains ? f->chain->first[chain] : 0;
	q->last = f->chain->n_chains ? f->chain->first[chain + 1] : 0;
	n = q->last - q->first;
	q->launches = lull_alloc(n + 1, sizeof(*q->launches));
	q->nodes = lull_alloc(n + 1, sizeof(*q->nodes));
	q->marks = lull_alloc(n + 1, sizeof(*q->marks));
	lull_vec_init(&q->all, sizeof(struct lull_call_symbol));
	q->os = lull_alloc(n + 1, sizeof(*q->os));
	read_symbols(q);
	find_gaps(q);
	if (n)
		find_oscalls(q, chain);
}

void lull_sequence_release(struct lull_sequence *q)
{
	free(q->launches);
	free(q->nodes);
	free(q->marks);
	free(q->os);
	lull_vec_release(&q->all);
}

static bool is_at(const struct lull_sequence *q, const struct lull_call_symbol *s, u32 node)
{
	const struct lull_call_symbol *all = q->all.at;
	u32 mark = q->marks[node - q->first];

	if (s->what == LULL_SEP_GAP)
		return is_long_gap(q, node);
	if (s->what == LULL_SEP_OSCALL)
		return q->os[node - q->first] == s->number + 1;
	if (s->what == LULL_SEP_UPDATE)
		return mark && all[mark - 1].is_update;
	return mark == s->number + 1;
}

void lull_sequence_cut(const struct lull_sequence *q, const struct lull_call_symbol *s,
		       struct lull_loop *l, u32 until)
{
	const struct lull_chain *c = q->f->chain;
	bool is_gap = s->what == LULL_SEP_GAP || s->what == LULL_SEP_OSCALL,
	     is_after = s->what >= LULL_SEP_WAIT, was_here = false;
	u32 last = LULL_NONE;

	for (u32 i = q->first; i < until; i++) {
		bool is_here, is_start;

		if (!q->marks[i - q->first] && !is_gap)
			continue;
		is_here = is_at(q, s, i);
		is_start = is_after ? was_here && !is_here : is_here && (is_gap || !was_here);
		/* What comes before the first wait or gap is a round, too. */
		if (is_start || (last == LULL_NONE && (is_gap || is_after)))
			lull_loop_mark(l, lull_chain_gap_ns(c, i));
		was_here = is_here;
		last = i;
	}
	if (last == LULL_NONE)
		return;
	l->last_ns = c->nodes[last].end_ns;
	/* What comes after the last wait is no whole round. */
	if (is_after && !was_here && l->marks.n > 1) {
		l->last_ns = ((u64 *)l->marks.at)[l->marks.n - 1];
		l->marks.n--;
	}
}

const char *lull_sequence_name(const struct lull_sequence *q, const struct lull_call_symbol *s)
{
	const struct lull_node *nodes = q->f->chain->nodes;
	struct lull_reader *r = q->f->reader;

	switch (s->what) {
	case LULL_SEP_UPDATE:
		return NULL;
	case LULL_SEP_GAP:
		return "long gap between calls";
	case LULL_SEP_OSCALL:
		return lull_reader_string(r, s->string, NULL);
	case LULL_SEP_COPY_IN:
		return "copy to the device";
	case LULL_SEP_LAUNCH:
		return lull_units_name(&q->f->units->at[nodes[s->node].unit], r);
	default:
		if (nodes[s->node].unit == LULL_NONE)
			return lull_reader_string(r, nodes[s->node].name, NULL);
		return s->what == LULL_SEP_WAIT ? "copy to the host" : "copy";
	}
}
