/*
 * Candidates for rounds: what repeats in the calls of the thread that launches most.
 *
 * The first guess is the period of the launches (model/period.h). It may be too short: a loop of
 * equal launches has a period of one launch. Then what else the thread does decides: waits for the
 * device, copies, long gaps, calls of the C library and launches of another kind are separators,
 * and the launches between two of them are a round. If nothing separates equal launches, they are
 * put into groups.
 */
#include "model/round/round_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"
#include "model/period.h"
#include "model/round/round_sequence.h"

#define MAX_TRIED     24 /* separators */
#define MAX_PER_COUNT 4	 /* launches that occur equally often cut at equal places */

/* ---- the period of the launches ---- */

/* Whether the usual piece is one kind of launch, however often. */
static bool is_plain(const struct lull_sequence *q, const struct lull_vec *cuts)
{
	const struct lull_call_symbol *all = q->all.at;
	const size_t *at = cuts->at;
	size_t n_plain = 0;

	for (size_t i = 0; i + 1 < cuts->n; i++) {
		bool is_same = true;

		for (size_t k = at[i] + 1; k < at[i + 1] && is_same; k++)
			is_same = q->launches[k] == q->launches[at[i]];
		n_plain += is_same && all[q->launches[at[i]]].what == LULL_SEP_LAUNCH &&
			   !all[q->launches[at[i]]].is_graph;
	}
	return cuts->n > 1 && n_plain * 2 > cuts->n - 1;
}

static u64 cut_ns(const struct lull_sequence *q, size_t at)
{
	const struct lull_chain *c = q->f->chain;

	return at < q->n ? lull_chain_gap_ns(c, q->nodes[at]) : c->nodes[q->nodes[q->n - 1]].end_ns;
}

/*
 * Where the last round ends: with its last launch, and the waits after that if the round before has
 * the same ones there. A wait at the end of the program is no part of the loop.
 */
static u64 last_ns(const struct lull_sequence *q, const struct lull_vec *cuts)
{
	const struct lull_node *nodes = q->f->chain->nodes;
	const size_t *at = cuts->at;
	u32 i, before;

	if (cuts->n < 3 || at[cuts->n - 1] < q->n)
		return cut_ns(q, at[cuts->n - 1]);
	i = q->nodes[q->n - 1];
	before = q->nodes[at[cuts->n - 2] - 1];
	while (i + 1 < q->last && nodes[i + 1].kind == LULL_KIND_OF_SYNC &&
	       nodes[before + 1].kind == LULL_KIND_OF_SYNC &&
	       nodes[before + 1].name == nodes[i + 1].name) {
		i++;
		before++;
	}
	return nodes[i].end_ns;
}

/* Add the period as a candidate, judged; whether there is one. */
static bool add_period(struct lull_sequence *q, bool *is_plain_one)
{
	struct lull_vec cuts;
	struct lull_loop *l;
	const size_t *at;
	bool has_period;

	lull_vec_init(&cuts, sizeof(size_t));
	lull_period_find(q->launches, q->n, (u32)q->all.n, &cuts);
	at = cuts.at;
	has_period = cuts.n > LULL_LN(rounds_least);
	*is_plain_one = is_plain(q, &cuts);
	if (has_period) {
		l = lull_loop_add(q->f, LULL_ROUNDS_PERIOD);
		for (size_t i = 0; i + 1 < cuts.n; i++)
			lull_loop_mark(l, cut_ns(q, at[i]));
		l->last_ns = last_ns(q, &cuts);
		lull_loop_judge(q->f, l, true);
		lull_loop_trim(q->f, l, true);
	}
	lull_vec_release(&cuts);
	return has_period;
}

/* ---- separators ---- */

static int by_count(const void *a, const void *b)
{
	const struct lull_call_symbol *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

/*
 * Whether `new` is to be preferred: the shortest of a millisecond, else the longest. If both are
 * the same rounds, what the thread does says more than a kernel of it.
 */
static bool is_better(const struct lull_loop *new, bool is_launch, const struct lull_loop *old,
		      bool was_launch)
{
	bool is_long = new->median_ns >= LULL_LN(round_ns),
	     was_long = old->median_ns >= LULL_LN(round_ns);

	if (new->n == old->n)
		return was_launch && !is_launch;
	if (is_long != was_long)
		return is_long;
	return is_long ? new->median_ns < old->median_ns : new->median_ns > old->median_ns;
}

struct limits {
	f64 even, usual;
	u64 least_ns, most_ns; /* of a round */
	u64 n_least;	       /* as often a separator has to occur */
	bool has_launches;     /* launches may separate, too */
	bool is_strict;	       /* those have to be clearer than others */
	bool has_updates;      /* each round has an update of the optimizer, or none has */
};

static bool is_good(const struct lull_loop *l, const struct limits *limits)
{
	return l->n >= LULL_LN(rounds_least) && l->even >= limits->even &&
	       l->usual >= limits->usual && l->covered >= LULL_L(covered_least) &&
	       l->median_ns > limits->least_ns && l->median_ns < limits->most_ns &&
	       (!limits->has_updates || l->updated <= LULL_L(update_few) ||
		l->updated >= 1 - LULL_L(update_few));
}

/* Cut the calls up to a node by a separator, and measure the rounds. */
static void try_separator(struct lull_sequence *q, struct lull_call_symbol *s, struct lull_loop *l,
			  u32 until)
{
	bool is_guess = until < q->last;

	l->name = lull_sequence_name(q, s);
	l->marks.n = 0;
	lull_sequence_cut(q, s, l, until);
	lull_loop_judge(q->f, l, is_guess);
	lull_loop_trim(q->f, l, is_guess);
	lull_loop_merge(q->f, l, is_guess);
}

static bool may_separate(const struct lull_sequence *q, const struct lull_call_symbol *s,
			 const struct limits *limits)
{
	if (s->count < LULL_LN(rounds_least) || s->count < limits->n_least)
		return false;
	return s->what != LULL_SEP_LAUNCH || (limits->has_launches && (u64)s->count * 2 <= q->n);
}

/* Whether so many launches that occur as often were before it that it need not be tried. */
static bool is_repeated(const struct lull_call_symbol *sorted, size_t at)
{
	size_t n = 0;

	while (n < at && sorted[at - n - 1].count == sorted[at].count)
		n++;
	return sorted[at].what == LULL_SEP_LAUNCH && n >= MAX_PER_COUNT;
}

/* A launch separates if all is as clear as where a loop is looked for inside a period. */
static bool is_clear(const struct lull_loop *l, const struct lull_call_symbol *s,
		     const struct limits *limits)
{
	struct limits clear = *limits;

	if (s->what != LULL_SEP_LAUNCH || !limits->is_strict)
		return is_good(l, limits);
	clear.even = LULL_L(inner_even);
	clear.usual = LULL_L(inner_usual);
	clear.least_ns = LULL_LN(round_ns);
	clear.has_updates = true;
	return is_good(l, &clear);
}

/* A gap inside a run of equal launches may be an accident, if calls separate such runs. */
static bool is_weak(const struct lull_sequence *q, const struct lull_call_symbol *s)
{
	return s->what == LULL_SEP_GAP && q->is_gap_inside;
}

/* Whether to take the separator `s` with the rounds `l` instead of the best so far. */
static bool is_preferred(const struct lull_sequence *q, const struct lull_loop *l,
			 const struct lull_call_symbol *s, const struct lull_loop *kept,
			 const struct lull_call_symbol *best)
{
	if (!best || is_weak(q, best) != is_weak(q, s))
		return !best || is_weak(q, best);
	return is_better(l, s->what == LULL_SEP_LAUNCH, kept, best->what == LULL_SEP_LAUNCH);
}

/* Add the best separator as a candidate; whether there is one. */
static bool add_separated(struct lull_sequence *q, const struct limits *limits)
{
	u32 until = q->last - q->first > LULL_LOOP_LOOK ? q->first + LULL_LOOP_LOOK : q->last;
	struct lull_call_symbol *sorted = lull_alloc(q->all.n + 1, sizeof(*sorted)), *best = NULL;
	struct lull_loop *l = lull_loop_add(q->f, LULL_ROUNDS_WAITS), kept = { .n = 0 };
	u32 n_tried = 0;

	memcpy(sorted, q->all.at, q->all.n * sizeof(*sorted));
	lull_sort(sorted, q->all.n, sizeof(*sorted), by_count);
	for (size_t i = 0; i < q->all.n && n_tried < MAX_TRIED; i++) {
		if (!may_separate(q, &sorted[i], limits) || is_repeated(sorted, i))
			continue;
		n_tried++;
		try_separator(q, &sorted[i], l, until);
		if (!is_clear(l, &sorted[i], limits) ||
		    !is_preferred(q, l, &sorted[i], &kept, best))
			continue;
		best = &sorted[i];
		kept = *l; /* only its numbers are used */
	}
	if (best) {
		try_separator(q, best, l, q->last);
		/* A launch is a part of the pattern. */
		if (best->what == LULL_SEP_LAUNCH)
			l->source = LULL_ROUNDS_PERIOD;
	} else {
		lull_loop_drop(q->f);
	}
	free(sorted);
	return best != NULL;
}

/* Whether some rounds update the model and others do not: then they are parts of a step. */
static bool are_parts(const struct lull_loop *l)
{
	return l->n && l->updated > LULL_L(update_few) && l->updated < 1 - LULL_L(update_few);
}

/*
 * Gradients that are accumulated make parts that are alike, or nearly. If candidates from `from` on
 * are such, the updates separate steps, and the candidates do not count.
 */
static void add_updates(struct lull_sequence *q, size_t from)
{
	const struct limits limits = { .even = LULL_L(update_even), .most_ns = UINT64_MAX };
	struct lull_call_symbol s = { .node = LULL_NONE, .what = LULL_SEP_UPDATE };
	struct lull_loop *loops = q->f->loops.at, *l;
	bool have_parts = false;

	for (size_t i = from; i < q->f->loops.n; i++)
		have_parts |= are_parts(&loops[i]);
	if (!have_parts)
		return;
	l = lull_loop_add(q->f, LULL_ROUNDS_OPTIMIZER);
	try_separator(q, &s, l, q->last);
	if (!is_good(l, &limits)) {
		lull_loop_drop(q->f);
		return;
	}
	loops = q->f->loops.at;
	for (size_t i = from; i + 1 < q->f->loops.n; i++)
		loops[i].n = 0;
}

/* ---- groups ---- */

/* Equal launches with nothing between: groups of about a millisecond, with no claim. */
static void add_groups(struct lull_sequence *q)
{
	const struct lull_units *u = q->f->units;
	const struct lull_unit *first, *last;
	struct lull_loop *l;
	u64 span_ns;
	size_t n_group;

	if (q->n < LULL_LN(rounds_least))
		return;
	/* The device may be slower than the thread that launches. */
	span_ns = cut_ns(q, q->n) - cut_ns(q, 0);
	first = &u->at[q->f->chain->nodes[q->nodes[0]].unit];
	last = &u->at[q->f->chain->nodes[q->nodes[q->n - 1]].unit];
	if (last->end_ns > first->begin_ns && last->end_ns - first->begin_ns > span_ns)
		span_ns = last->end_ns - first->begin_ns;
	n_group = span_ns ? (size_t)(LULL_L(round_ns) * (f64)q->n / (f64)span_ns) + 1 : q->n;
	if (n_group < 2 || q->n / n_group < LULL_LN(rounds_least))
		return;
	l = lull_loop_add(q->f, LULL_ROUNDS_GROUP);
	l->n_grouped = (u32)n_group;
	for (size_t i = 0; i + n_group <= q->n; i += n_group)
		lull_loop_mark(l, cut_ns(q, i));
	l->last_ns = cut_ns(q, q->n - q->n % n_group);
	lull_loop_judge(q->f, l, true);
}

static bool has_equal_launches(const struct lull_sequence *q)
{
	const struct lull_call_symbol *all = q->all.at;

	for (size_t i = 0; i < q->all.n; i++) {
		if (all[i].what == LULL_SEP_LAUNCH && !all[i].is_graph &&
		    (f64)all[i].count >= LULL_L(equal) * (f64)q->n)
			return true;
	}
	return false;
}

/* Whether the thread waits after each launch, by one kind of call. */
static bool is_each_awaited(const struct lull_sequence *q)
{
	const struct lull_call_symbol *all = q->all.at;

	for (size_t i = 0; i < q->all.n; i++) {
		if (all[i].what == LULL_SEP_WAIT && (f64)all[i].count >= LULL_L(equal) * (f64)q->n)
			return true;
	}
	return false;
}

/* Find something better than the period `l`, which is a part of a round or has rounds in it. */
static bool add_other(struct lull_sequence *q, const struct lull_loop *l, bool is_plain_one)
{
	u64 median_ns = l->median_ns;
	size_t n_before = q->f->loops.n;
	struct limits outer = { .even = LULL_L(even_least),
				.least_ns = median_ns,
				.most_ns = UINT64_MAX,
				.has_launches = is_plain_one };
	struct limits inner = { .even = LULL_L(inner_even),
				.usual = LULL_L(inner_usual),
				.least_ns = LULL_LN(round_ns),
				.most_ns = median_ns / 2,
				.n_least = 2 * (u64)l->marks.n,
				.has_updates = true };

	if (!is_plain_one && median_ns >= LULL_LN(tiny_ns))
		return add_separated(q, &inner);
	/* Long gaps now and then do not make rounds of what may be rounds itself. */
	if (is_plain_one && median_ns >= LULL_LN(alone_ns) && is_each_awaited(q))
		outer.usual = LULL_L(inner_usual);
	if (!add_separated(q, &outer) && is_plain_one && median_ns < LULL_LN(alone_ns))
		add_groups(q);
	return q->f->loops.n > n_before;
}

void lull_loops_from_calls(struct lull_loop_finder *f)
{
	struct limits any = { .even = LULL_L(even_least),
			      .most_ns = UINT64_MAX,
			      .has_launches = true,
			      .is_strict = true };
	size_t n_before = f->loops.n;
	struct lull_sequence q;
	bool is_plain_one;

	lull_sequence_init(&q, f);
	if (q.n && add_period(&q, &is_plain_one)) {
		size_t at = f->loops.n - 1;
		bool has_other = add_other(&q, lull_vec_get(&f->loops, at), is_plain_one);
		struct lull_loop *l = lull_vec_get(&f->loops, at);

		/* One short launch is no round, even if nothing else is found. */
		if (has_other || (is_plain_one && l->median_ns < LULL_LN(alone_ns)))
			l->n = 0;
	} else if (q.n && !add_separated(&q, &any) && has_equal_launches(&q)) {
		add_groups(&q);
	}
	add_updates(&q, n_before);
	lull_sequence_release(&q);
}
