/*
 * Candidates for rounds: what repeats in the calls of the thread that launches most.
 *
 * The first guess is the period of the launches (model/period.h). It may be too short: a loop of
 * equal launches has a period of one launch. Then what else the thread does decides: waits for the
 * device, copies, long gaps, and launches of another kind are separators, and the launches between
 * two of them are a round. If nothing separates equal launches, they are put into groups.
 */
#include "model/round/round_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/period.h"

#define SHORT_NS      1000000u /* a round that a person means takes about a millisecond or more */
#define TINY_NS	      100000u  /* whatever is in it, it is a part of one */
#define GAP_NS	      50000u   /* a gap between calls that separates is at least this long, */
#define GAP_FACTOR    10       /* and this many times as long as usual */
#define GAP_SHARE     4	       /* and at most every fourth gap is */
#define MAX_TRIED     12       /* separators */
#define EVEN_LEAST    0.8
#define COVERED_LEAST 0.6
#define INNER_EVEN    0.9 /* a loop inside a period that was found has to be clearer */
#define INNER_USUAL   0.6
#define EQUAL_SHARE   0.9 /* of the launches are of the same kind */

enum separator { SEP_LAUNCH, SEP_COPY_IN, SEP_OTHER, SEP_WAIT, SEP_GAP };

/* A symbol of the sequence. */
struct symbol {
	u32 count;
	u32 node;    /* the first one */
	u32 number;  /* itself */
	u8 what;     /* enum separator */
	u8 is_graph; /* launches a graph */
};

struct sequence {
	struct lull_loop_finder *f;
	u32 first, last;     /* nodes of the chain */
	u32 *launches;	     /* symbols of launches and copies */
	u32 *nodes;	     /* their nodes */
	size_t n;	     /* launches */
	u32 *marks;	     /* by node - first: symbol + 1 of what it is, or 0 */
	struct lull_vec all; /* struct symbol */
	u32 gap;	     /* the symbol of long gaps, or LULL_NONE */
	u64 gap_ns;	     /* how long they are */
};

/* ---- symbols ---- */

static u32 chain_to_look_at(const struct lull_chain *c)
{
	u32 best = 0, most = 0;

	for (u32 k = 0; c->n_chains > 1 && k < c->n_chains; k++) {
		u32 n = 0;

		for (u32 i = c->first[k]; i < c->first[k + 1]; i++)
			n += c->nodes[i].unit != LULL_NONE;
		/* The first chain is of the thread that starts; others have to be far larger. */
		if (!k || n / 2 > most) {
			best = k;
			most = n;
		}
	}
	return best;
}

/* What a call started or does, as a key: kernels by name, copies by direction, waits by call. */
static u64 key_of(const struct sequence *q, const struct lull_node *node,
		  const struct lull_launch_row *launches, struct symbol *s)
{
	const struct lull_unit *unit;
	u64 key;

	if (node->unit == LULL_NONE) {
		s->what = SEP_WAIT;
		return 1ull << 50 | node->name;
	}
	unit = &q->f->units->at[node->unit];
	key = (u64)unit->kind << 40;
	s->what = SEP_LAUNCH;
	if (unit->kind == LULL_UNIT_COPY) {
		u8 direction = lull_units_copy(q->f->units, unit)->direction;

		s->what = direction == LULL_COPY_IN    ? SEP_COPY_IN
			  : direction == LULL_COPY_OUT ? SEP_WAIT
						       : SEP_OTHER;
		return key | direction;
	}
	if (unit->kind != LULL_UNIT_MEMSET && unit->what)
		return key | launches[unit->what - 1].name;
	s->is_graph = unit->kind != LULL_UNIT_MEMSET;
	return key;
}

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Long gaps are a symbol, too, if they are few and clearly longer than the others. */
static void find_gaps(struct sequence *q)
{
	const struct lull_chain *c = q->f->chain;
	u32 n = q->last - q->first, step = n / 65536 + 1;
	u64 *gaps_ns = lull_alloc(n / step + 2, sizeof(*gaps_ns)), n_long = 0;
	size_t n_gaps = 0;

	for (u32 i = q->first + 1; i < q->last; i += step)
		gaps_ns[n_gaps++] = c->nodes[i].begin_ns - lull_chain_gap_ns(c, i);
	q->gap = LULL_NONE;
	if (n_gaps) {
		lull_sort(gaps_ns, n_gaps, sizeof(*gaps_ns), by_value);
		q->gap_ns = gaps_ns[n_gaps / 2] * GAP_FACTOR;
		q->gap_ns = q->gap_ns > GAP_NS ? q->gap_ns : GAP_NS;
	}
	/* They are sorted, and a sample where there are many. */
	while (n_long < n_gaps && gaps_ns[n_gaps - n_long - 1] >= q->gap_ns)
		n_long++;
	n_long *= step;
	free(gaps_ns);
	if (n_long < LULL_LOOP_MIN || n_long * GAP_SHARE > n)
		return;
	q->gap = (u32)q->all.n;
	*(struct symbol *)lull_vec_push(&q->all) = (struct symbol){
		.count = (u32)n_long, .node = LULL_NONE, .number = q->gap, .what = SEP_GAP
	};
}

/* The number of what a node does; names of kernels are looked up once for each launch. */
static u32 number_of(struct sequence *q, u32 at, struct lull_map *numbers, u32 *of_launch,
		     const struct lull_launch_row *rows)
{
	const struct lull_node *node = &q->f->chain->nodes[at];
	const struct lull_unit *unit =
		node->unit == LULL_NONE ? NULL : &q->f->units->at[node->unit];
	u32 *known = unit && unit->kind == LULL_UNIT_KERNEL ? &of_launch[unit->what] : NULL;
	struct symbol s = { .node = at };
	u32 *number;
	bool is_new;

	if (known && *known)
		return *known - 1;
	number = lull_map_add(numbers, key_of(q, node, rows, &s), &is_new);
	if (is_new) {
		s.number = *number = (u32)q->all.n;
		*(struct symbol *)lull_vec_push(&q->all) = s;
	}
	if (known)
		*known = *number + 1;
	return *number;
}

static void read_symbols(struct sequence *q)
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
		((struct symbol *)q->all.at)[number].count++;
		q->marks[i - q->first] = number + 1;
		if (q->f->chain->nodes[i].unit == LULL_NONE)
			continue;
		q->nodes[q->n] = i;
		q->launches[q->n++] = number;
	}
	lull_map_release(&numbers);
	free(of_launch);
}

static void sequence_init(struct sequence *q, struct lull_loop_finder *f)
{
	u32 chain = chain_to_look_at(f->chain), n;

	*q = (struct sequence){ .f = f };
	q->first = f->chain->n_chains ? f->chain->first[chain] : 0;
	q->last = f->chain->n_chains ? f->chain->first[chain + 1] : 0;
	n = q->last - q->first;
	q->launches = lull_alloc(n + 1, sizeof(*q->launches));
	q->nodes = lull_alloc(n + 1, sizeof(*q->nodes));
	q->marks = lull_alloc(n + 1, sizeof(*q->marks));
	lull_vec_init(&q->all, sizeof(struct symbol));
	read_symbols(q);
	find_gaps(q);
}

static void sequence_release(struct sequence *q)
{
	free(q->launches);
	free(q->nodes);
	free(q->marks);
	lull_vec_release(&q->all);
}

/* ---- the period of the launches ---- */

/* Whether the usual piece is one kind of launch, however often. */
static bool is_plain(const struct sequence *q, const struct lull_vec *cuts)
{
	const struct symbol *all = q->all.at;
	const size_t *at = cuts->at;
	size_t n_plain = 0;

	for (size_t i = 0; i + 1 < cuts->n; i++) {
		bool is_same = true;

		for (size_t k = at[i] + 1; k < at[i + 1] && is_same; k++)
			is_same = q->launches[k] == q->launches[at[i]];
		n_plain += is_same && all[q->launches[at[i]]].what == SEP_LAUNCH &&
			   !all[q->launches[at[i]]].is_graph;
	}
	return cuts->n > 1 && n_plain * 2 > cuts->n - 1;
}

static u64 cut_ns(const struct sequence *q, size_t at)
{
	const struct lull_chain *c = q->f->chain;

	return at < q->n ? lull_chain_gap_ns(c, q->nodes[at]) : c->nodes[q->nodes[q->n - 1]].end_ns;
}

/* Add the period as a candidate, judged; whether there is one. */
static bool add_period(struct sequence *q, bool *is_plain_one)
{
	struct lull_vec cuts;
	struct lull_loop *l;
	const size_t *at;
	bool has_period;

	lull_vec_init(&cuts, sizeof(size_t));
	lull_period_find(q->launches, q->n, (u32)q->all.n, &cuts);
	at = cuts.at;
	has_period = cuts.n > LULL_LOOP_MIN;
	*is_plain_one = is_plain(q, &cuts);
	if (has_period) {
		l = lull_loop_add(q->f, LULL_ROUNDS_PERIOD);
		for (size_t i = 0; i + 1 < cuts.n; i++)
			lull_loop_mark(l, cut_ns(q, at[i]));
		l->last_ns = cut_ns(q, at[cuts.n - 1]);
		lull_loop_judge(q->f, l, true);
		lull_loop_trim(q->f, l, true);
	}
	lull_vec_release(&cuts);
	return has_period;
}

/* ---- separators ---- */

/* Where rounds begin: after a wait, at any other separator. Runs of separators are one. */
static void cut_at(struct sequence *q, const struct symbol *s, struct lull_loop *l, u32 until)
{
	const struct lull_chain *c = q->f->chain;
	bool has_passed = false, is_between = true;
	u32 last = LULL_NONE;

	for (u32 i = q->first; i < until; i++) {
		u32 mark = q->marks[i - q->first];
		bool is_here =
			s->what == SEP_GAP
				? i > q->first && c->nodes[i].begin_ns - lull_chain_gap_ns(c, i) >=
							  q->gap_ns
				: mark == s->number + 1;
		bool is_start = s->what == SEP_WAIT ? has_passed && !is_here : is_here;

		if (!mark && s->what != SEP_GAP)
			continue;
		/* What comes before the first wait is a round, too. */
		if (last == LULL_NONE && mark && s->what >= SEP_WAIT && !is_start)
			lull_loop_mark(l, c->nodes[i].begin_ns);
		/* A run of equal separators begins one round. */
		if (is_start && (s->what == SEP_WAIT || s->what == SEP_GAP || is_between))
			lull_loop_mark(l, lull_chain_gap_ns(c, i));
		if (s->what == SEP_WAIT)
			has_passed = is_here;
		is_between = !is_here;
		last = i;
	}
	if (last != LULL_NONE)
		l->last_ns = c->nodes[last].end_ns;
}

static const char *name_of(const struct sequence *q, const struct symbol *s)
{
	const struct lull_node *node = s->node == LULL_NONE ? NULL : &q->f->chain->nodes[s->node];

	switch (s->what) {
	case SEP_GAP:
		return "long gap between calls";
	case SEP_COPY_IN:
		return "copy to the device";
	case SEP_LAUNCH:
		return lull_units_name(&q->f->units->at[node->unit], q->f->reader);
	default:
		return node->unit == LULL_NONE ? lull_reader_string(q->f->reader, node->name, NULL)
		       : s->what == SEP_WAIT   ? "copy to the host"
					       : "copy";
	}
}

static int by_count(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Whether `new` is to be preferred: the shortest of a millisecond, else the longest. */
static bool is_better(const struct lull_loop *new, const struct lull_loop *old)
{
	bool is_long = new->median_ns >= SHORT_NS, was_long = old->median_ns >= SHORT_NS;

	if (is_long != was_long)
		return is_long;
	return is_long ? new->median_ns < old->median_ns : new->median_ns > old->median_ns;
}

struct limits {
	f64 even, usual;
	u64 least_ns, most_ns; /* of a round */
	u64 n_least;	       /* as often a separator has to occur */
	bool has_launches;     /* launches may separate, too */
	bool has_updates;      /* each round has an update of the optimizer, or none has */
};

static bool is_good(const struct lull_loop *l, const struct limits *limits)
{
	return l->n >= LULL_LOOP_MIN && l->even >= limits->even && l->usual >= limits->usual &&
	       l->covered >= COVERED_LEAST && l->median_ns > limits->least_ns &&
	       l->median_ns < limits->most_ns &&
	       (!limits->has_updates || l->updated < 0.05 || l->updated > 0.95);
}

/* Cut the calls up to a node by a separator, and measure the rounds. */
static void try_separator(struct sequence *q, struct symbol *s, struct lull_loop *l, u32 until)
{
	bool is_guess = until < q->last;

	l->name = name_of(q, s);
	l->marks.n = 0;
	cut_at(q, s, l, until);
	lull_loop_judge(q->f, l, is_guess);
	lull_loop_trim(q->f, l, is_guess);
	lull_loop_merge(q->f, l, is_guess);
}

static bool may_separate(const struct sequence *q, const struct symbol *s,
			 const struct limits *limits)
{
	if (s->count < LULL_LOOP_MIN || s->count < limits->n_least)
		return false;
	return s->what != SEP_LAUNCH || (limits->has_launches && (u64)s->count * 2 <= q->n);
}

/* Add the best separator as a candidate; whether there is one. */
static bool add_separated(struct sequence *q, const struct limits *limits)
{
	u32 until = q->last - q->first > LULL_LOOP_LOOK ? q->first + LULL_LOOP_LOOK : q->last;
	struct symbol *sorted = lull_alloc(q->all.n + 1, sizeof(*sorted)), *best = NULL;
	struct lull_loop *l = lull_loop_add(q->f, LULL_ROUNDS_WAITS), kept = { .n = 0 };
	u32 n_tried = 0;

	memcpy(sorted, q->all.at, q->all.n * sizeof(*sorted));
	lull_sort(sorted, q->all.n, sizeof(*sorted), by_count);
	for (size_t i = 0; i < q->all.n && n_tried < MAX_TRIED; i++) {
		if (!may_separate(q, &sorted[i], limits))
			continue;
		n_tried++;
		try_separator(q, &sorted[i], l, until);
		if (!is_good(l, limits) || (best && !is_better(l, &kept)))
			continue;
		best = &sorted[i];
		kept = *l; /* only its numbers are used */
	}
	if (best)
		try_separator(q, best, l, q->last);
	else
		lull_loop_drop(q->f);
	free(sorted);
	return best != NULL;
}

/* ---- groups ---- */

/* Equal launches with nothing between: groups of about a millisecond, with no claim. */
static void add_groups(struct sequence *q)
{
	const struct lull_units *u = q->f->units;
	const struct lull_unit *first, *last;
	struct lull_loop *l;
	u64 span_ns;
	size_t n_group;

	if (q->n < LULL_LOOP_MIN)
		return;
	/* The device may be slower than the thread that launches. */
	span_ns = cut_ns(q, q->n) - cut_ns(q, 0);
	first = &u->at[q->f->chain->nodes[q->nodes[0]].unit];
	last = &u->at[q->f->chain->nodes[q->nodes[q->n - 1]].unit];
	if (last->end_ns > first->begin_ns && last->end_ns - first->begin_ns > span_ns)
		span_ns = last->end_ns - first->begin_ns;
	n_group = span_ns ? (size_t)((f64)SHORT_NS * (f64)q->n / (f64)span_ns) + 1 : q->n;
	if (n_group < 2 || q->n / n_group < LULL_LOOP_MIN)
		return;
	l = lull_loop_add(q->f, LULL_ROUNDS_GROUP);
	l->n_grouped = (u32)n_group;
	for (size_t i = 0; i + n_group <= q->n; i += n_group)
		lull_loop_mark(l, cut_ns(q, i));
	l->last_ns = cut_ns(q, q->n - q->n % n_group);
	lull_loop_judge(q->f, l, true);
}

static bool has_equal_launches(const struct sequence *q)
{
	const struct symbol *all = q->all.at;

	for (size_t i = 0; i < q->all.n; i++) {
		if (all[i].what == SEP_LAUNCH && !all[i].is_graph &&
		    (f64)all[i].count >= EQUAL_SHARE * (f64)q->n)
			return true;
	}
	return false;
}

/* Find something better than the period `l`, which is a part of a round or has rounds in it. */
static bool add_other(struct sequence *q, const struct lull_loop *l, bool is_plain_one)
{
	u64 median_ns = l->median_ns;
	size_t n_before = q->f->loops.n;
	struct limits outer = { EVEN_LEAST, 0, median_ns, UINT64_MAX, 0, is_plain_one, false };
	struct limits inner = { INNER_EVEN,	     INNER_USUAL, SHORT_NS, median_ns / 2,
				2 * (u64)l->marks.n, false,	  true };

	if (!is_plain_one && median_ns >= TINY_NS)
		return add_separated(q, &inner);
	if (!add_separated(q, &outer) && is_plain_one && median_ns < SHORT_NS)
		add_groups(q);
	return q->f->loops.n > n_before;
}

void lull_loops_from_calls(struct lull_loop_finder *f)
{
	struct limits any = { EVEN_LEAST, 0, 0, UINT64_MAX, 0, false, false };
	struct sequence q;
	bool is_plain_one;

	sequence_init(&q, f);
	if (q.n && add_period(&q, &is_plain_one)) {
		size_t at = f->loops.n - 1;
		bool has_other = add_other(&q, lull_vec_get(&f->loops, at), is_plain_one);
		struct lull_loop *l = lull_vec_get(&f->loops, at);

		/* One short launch is no round, even if nothing else is found. */
		if (has_other || (is_plain_one && l->median_ns < SHORT_NS))
			l->n = 0;
	} else if (q.n && !add_separated(&q, &any) && has_equal_launches(&q)) {
		add_groups(&q);
	}
	sequence_release(&q);
}
