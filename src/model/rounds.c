#include "model/rounds.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"
#include "model/round/round_find.h"

/* How much is known of a round by how it was found. What is said counts in full. */
static f64 trust_in(enum lull_rounds_source source)
{
	switch (source) {
	case LULL_ROUNDS_STEP:
	case LULL_ROUNDS_RANGE:
	case LULL_ROUNDS_HOOK:
		return 1;
	case LULL_ROUNDS_NAMED:
		return LULL_L(trust_named);
	case LULL_ROUNDS_FORWARD:
		return LULL_L(trust_forward);
	case LULL_ROUNDS_PERIOD:
		return LULL_L(trust_period);
	case LULL_ROUNDS_WAITS:
		return LULL_L(trust_waits);
	case LULL_ROUNDS_OPTIMIZER:
		return LULL_L(trust_optimizer);
	case LULL_ROUNDS_OPS:
		return LULL_L(trust_ops);
	case LULL_ROUNDS_GROUP:
		return LULL_L(trust_group);
	default:
		return 0;
	}
}

/* ---- which candidate ---- */

static f64 score_of(const struct lull_loop *l)
{
	f64 unlike = LULL_L(unlike);
	f64 score = trust_in(l->source) * l->weight * (unlike + (1 - unlike) * l->even);

	if (l->n < LULL_LN(rounds_least))
		return 0;
	return l->n < LULL_LN(rounds_few) ? score * LULL_L(rounds_few_part) : score;
}

/* Whether nothing else has to be looked at: the program said it, or hooks saw training. */
static bool decides(const struct lull_loop *l)
{
	f64 least = LULL_L(said_least);

	switch (l->source) {
	case LULL_ROUNDS_STEP:
	case LULL_ROUNDS_RANGE:
		return l->n >= 2 && l->covered >= least;
	case LULL_ROUNDS_HOOK:
		return l->n >= 2 && l->covered >= least && l->even >= least;
	default:
		return false;
	}
}

/* The candidate of this source, or NULL. */
static struct lull_loop *loop_of(struct lull_loop_finder *f, enum lull_rounds_source source)
{
	for (size_t i = 0; i < f->loops.n; i++) {
		struct lull_loop *l = lull_vec_get(&f->loops, i);

		if (l->source == source)
			return l;
	}
	return NULL;
}

/* ---- the last one ---- */

struct item {
	u64 begin_ns;
	u64 end_ns;
};

static int by_begin(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* What the last round launches and waits for, by time. */
static void last_items(struct lull_vec *items, const struct lull_loop_finder *f, u64 from_ns,
		       u64 to_ns)
{
	const struct lull_chain *c = f->chain;

	for (u32 k = 0; k < c->n_chains; k++) {
		for (u32 i = lull_chain_find(c, k, from_ns); i < c->first[k + 1]; i++) {
			const struct lull_node *node = &c->nodes[i];

			if (node->begin_ns >= to_ns)
				break;
			if (f->buckets[i] != LULL_LOOP_NO_ITEM && node->begin_ns >= from_ns)
				*(struct item *)lull_vec_push(items) =
					(struct item){ node->begin_ns, node->end_ns };
		}
	}
	if (items->n)
		lull_sort(items->at, items->n, sizeof(struct item), by_begin);
}

/* How long the longest of the others of its kind takes; 0 if the last round is like no other. */
static u64 known_ns(const struct lull_loop *l)
{
	const u64 *marks = l->marks.at;
	size_t last = l->marks.n - 1;
	u64 most_ns = 0;

	for (size_t i = 0; i < last; i++) {
		u64 dur_ns = marks[i + 1] - marks[i];

		if (l->kinds[i] == l->kinds[last] && dur_ns > most_ns)
			most_ns = dur_ns;
	}
	return most_ns;
}

/*
 * Nothing ends the last step of a program that only says where steps begin: it ran to the end of
 * the program or of the recording. Its work ends when it has done as much as the others.
 */
static void end_earlier(struct lull_loop *l, const struct item *items, size_t n, u64 from_ns)
{
	u64 most = (u64)(LULL_L(last_more) * (f64)l->median_size), usual_ns = known_ns(l);
	u64 most_ns =
		(u64)(LULL_L(last_long) * (f64)(usual_ns > l->median_ns ? usual_ns : l->median_ns));
	bool has_more = n > most && !usual_ns;

	if (!n || !(has_more || l->last_ns - from_ns > most_ns))
		return;
	n = has_more ? l->median_size : n;
	if (items[n - 1].end_ns < l->last_ns)
		l->last_ns = items[n - 1].end_ns;
	/* A wait at the end of the program takes as long as there is work. */
	if (l->last_ns - from_ns > most_ns)
		l->last_ns = items[n - 1].begin_ns + 1;
}

/*
 * A range at the start of each round ends long before the last one: it has as much work as others.
 */
static void end_later(struct lull_loop *l, const struct item *items, size_t n)
{
	size_t n_inside = 0;

	while (n_inside < n && items[n_inside].begin_ns < l->last_ns)
		n_inside++;
	if (LULL_L(last_long) * (f64)n_inside < (f64)l->median_size && n >= l->median_size)
		l->last_ns = items[l->median_size - 1].end_ns;
}

/*
 * The recording ended in the middle of the last one: it is like no other, and holds less. Marks of
 * the program are believed.
 */
static bool is_cut(const struct lull_loop *l, size_t n)
{
	return trust_in(l->source) < 1 && l->marks.n > LULL_LN(rounds_least) && l->kinds &&
	       !known_ns(l) && (f64)n < LULL_L(alike) * (f64)l->median_size;
}

static void end_last(const struct lull_loop_finder *f, struct lull_loop *l)
{
	bool is_step = l->source == LULL_ROUNDS_STEP || l->source == LULL_ROUNDS_HOOK;
	bool is_range = l->source == LULL_ROUNDS_RANGE || l->source == LULL_ROUNDS_NAMED ||
			l->source == LULL_ROUNDS_OPS;
	u64 from_ns, was_ns = l->last_ns;
	struct lull_vec items;

	if ((!is_step && !is_range) || l->marks.n < LULL_LN(rounds_least) || !l->median_size)
		return;
	from_ns = ((u64 *)l->marks.at)[l->marks.n - 1];
	lull_vec_init(&items, sizeof(struct item));
	last_items(&items, f, from_ns, is_step ? l->last_ns : UINT64_MAX);
	if (is_step) {
		end_earlier(l, items.at, items.n, from_ns);
	} else if (is_cut(l, items.n)) {
		l->marks.n--;
		l->last_ns = from_ns;
	} else {
		end_later(l, items.at, items.n);
	}
	lull_vec_release(&items);
	if (l->last_ns != was_ns)
		lull_loop_judge(f, l, false);
}

/* ---- the choice ---- */

/* What decides at once, in this order. */
static const enum lull_rounds_source marked[] = { LULL_ROUNDS_STEP, LULL_ROUNDS_RANGE,
						  LULL_ROUNDS_HOOK };

/* The candidate of this source, judged, if it decides. */
static struct lull_loop *decided_by(struct lull_loop_finder *f, enum lull_rounds_source source)
{
	struct lull_loop *l = loop_of(f, source);

	if (!l)
		return NULL;
	lull_loop_judge(f, l, false);
	end_last(f, l);
	return decides(l) ? l : NULL;
}

/* The candidate that explains the run best; one step that is marked is better than none. */
static struct lull_loop *best_of(struct lull_loop_finder *f)
{
	struct lull_loop *loops = f->loops.at, *best = NULL;

	for (size_t i = 0; i < f->loops.n; i++) {
		/* Those that were marked were judged. */
		if (loops[i].kinds)
			continue;
		lull_loop_judge(f, &loops[i], false);
		lull_loop_merge(f, &loops[i], false);
		end_last(f, &loops[i]);
	}
	lull_loops_from_calls(f);
	loops = f->loops.at;
	for (size_t i = 0; i < f->loops.n; i++) {
		if (!best || score_of(&loops[i]) > score_of(best))
			best = &loops[i];
	}
	if (best && score_of(best) >= LULL_L(score_least))
		return best;
	for (size_t i = 0; i < LULL_COUNT_OF(marked); i++) {
		struct lull_loop *l = loop_of(f, marked[i]);

		if (l)
			return l;
	}
	return NULL;
}

/* The only step that a profiler marked, if it holds the work: what repeats is inside of it. */
static struct lull_loop *only_step(struct lull_loop_finder *f)
{
	struct lull_loop *l = loop_of(f, LULL_ROUNDS_RANGE);

	return l && l->n == 1 && l->covered >= LULL_L(said_least) && l->name &&
			       !strncmp(l->name, "ProfilerStep", 12)
		       ? l
		       : NULL;
}

/* Whether most rounds begin inside calls of the model. */
static bool are_parts(const struct lull_loop_finder *f, const struct lull_loop *l)
{
	const u64 *marks = l->marks.at;
	size_t n_inside = 0;

	for (size_t i = 0; i < l->marks.n; i++) {
		for (u32 k = 0; k < f->n_calls; k++)
			n_inside += marks[i] >= f->calls[k].from_ns && marks[i] < f->calls[k].to_ns;
	}
	return (f64)n_inside > LULL_L(said_least) * (f64)l->marks.n;
}

static void take(struct lull_rounds *s, const struct lull_loop *l)
{
	const u64 *marks = l->marks.at;

	s->source = l->source;
	s->last_ns = l->last_ns;
	s->name = l->name;
	s->n_grouped = l->n_grouped;
	for (size_t i = 0; i < l->marks.n; i++)
		*(struct lull_round *)lull_vec_push(&s->all) =
			(struct lull_round){ .mark_ns = marks[i],
					     .kind = l->kinds ? l->kinds[i] : 0 };
}

static void find_marks(struct lull_rounds *s, struct lull_loop_finder *f)
{
	bool has_steps = !(f->without & LULL_WITHOUT_STEPS);
	struct lull_loop *best = NULL;

	if (has_steps)
		lull_loops_from_table(f, LULL_STEP_SAID);
	best = decided_by(f, LULL_ROUNDS_STEP);
	if (!best) {
		if (has_steps)
			lull_loops_from_table(f, LULL_STEP_FOUND);
		lull_loops_from_ranges(f);
		best = decided_by(f, LULL_ROUNDS_RANGE);
	}
	if (!best)
		best = decided_by(f, LULL_ROUNDS_HOOK);
	if (!best)
		best = only_step(f);
	if (!best)
		best = best_of(f);
	if (!best)
		return;
	/* Guesses were judged by their first rounds only. */
	if (best->n_judged < best->marks.n)
		lull_loop_judge(f, best, false);
	take(s, best);
	if (trust_in(best->source) < 1 && are_parts(f, best)) {
		s->model = f->model;
		s->n_calls = f->n_calls;
	}
}

/* The round of each node by when it was called; units are in the round of their call. */
static void assign(struct lull_rounds *s, struct lull_chain *c, struct lull_units *units)
{
	const struct lull_round *rounds = s->all.at;

	for (u32 k = 0; k < c->n_chains; k++) {
		u32 round = LULL_NONE;

		for (u32 i = c->first[k]; i < c->first[k + 1]; i++) {
			struct lull_node *node = &c->nodes[i];

			while (round + 1 < s->all.n && rounds[round + 1].mark_ns <= node->begin_ns)
				round++;
			node->round = node->begin_ns >= s->last_ns ? LULL_NONE : round;
			for (u32 u = node->unit; u != LULL_NONE; u = units->next[u])
				units->at[u].round = node->round;
		}
	}
}

static void set_windows(struct lull_rounds *s, const struct lull_units *units)
{
	struct lull_round *rounds = s->all.at;
	u64 end_ns = 0;

	s->first_ns = UINT64_MAX;
	for (u32 i = 0; i < units->n; i++) {
		const struct lull_unit *unit = &units->at[i];

		if (unit->round == LULL_NONE)
			continue;
		if (unit->begin_ns < s->first_ns)
			s->first_ns = unit->begin_ns;
		if (unit->end_ns > rounds[unit->round].end_ns)
			rounds[unit->round].end_ns = unit->end_ns;
	}
	end_ns = s->first_ns == UINT64_MAX ? 0 : s->first_ns;
	s->first_ns = end_ns;
	for (size_t i = 0; i < s->all.n; i++) {
		end_ns = rounds[i].end_ns > end_ns ? rounds[i].end_ns : end_ns;
		rounds[i].end_ns = end_ns;
	}
}

/* ---- kinds ---- */

static u64 dur_ns(const struct lull_rounds *s, u32 i)
{
	return lull_round_end_ns(s, i) - lull_round_begin_ns(s, i);
}

/* Number the kinds again: only steady rounds count. */
static void sum_kinds(struct lull_rounds *s, const struct lull_units *units)
{
	struct lull_round_kind sums[LULL_ROUNDS_MAX_KINDS] = { { 0 } };
	struct lull_round *rounds = s->all.at;
	u32 number[LULL_ROUNDS_MAX_KINDS];

	for (u32 i = s->first_steady; i < s->all.n; i++) {
		sums[rounds[i].kind].n++;
		sums[rounds[i].kind].dur_ns += dur_ns(s, i);
	}
	for (u32 i = 0; i < units->n; i++) {
		u32 round = units->at[i].round;

		if (round != LULL_NONE && round >= s->first_steady)
			sums[rounds[round].kind].n_launches++;
	}
	for (u32 k = 0; k < LULL_ROUNDS_MAX_KINDS; k++) {
		u32 before = 0;

		for (u32 i = 0; i < LULL_ROUNDS_MAX_KINDS; i++)
			before += sums[i].n > sums[k].n || (i < k && sums[i].n == sums[k].n);
		number[k] = before;
		s->kinds[before] = sums[k];
		s->n_kinds += sums[k].n > 0;
	}
	for (size_t i = 0; i < s->all.n; i++)
		rounds[i].kind = number[rounds[i].kind];
}

/* ---- warm-up ---- */

/* Whether steps of the second half take as long as this one: then it is no warm-up. */
static bool comes_again(const struct lull_rounds *s, u64 long_ns)
{
	u32 n = (u32)s->all.n, n_long = 0;

	for (u32 i = n / 2; i < n; i++)
		n_long += dur_ns(s, i) >= long_ns;
	return (f64)n_long >= LULL_L(again) * (f64)(n - n / 2);
}

/* Step 0 never counts: buffers, lazy loading. Nor do those after it that are far too long. */
static void skip_warm_up(struct lull_rounds *s)
{
	u32 n = (u32)s->all.n;
	u64 *sorted_ns, long_ns;

	s->first_steady = n ? 1 : 0;
	if (n < LULL_LN(warm_least))
		return;
	sorted_ns = lull_alloc(n + 1, sizeof(*sorted_ns));
	for (u32 i = 0; i < n; i++)
		sorted_ns[i] = dur_ns(s, i);
	lull_sort_u64(sorted_ns, n);
	long_ns = (u64)(LULL_L(warm) * (f64)sorted_ns[n / 2]);
	free(sorted_ns);
	for (u32 i = 1; i < n / 2 && dur_ns(s, i) > long_ns; i++) {
		/* A step far longer than those that come again is warm-up all the same. */
		if (comes_again(s, (u64)((f64)dur_ns(s, i) / LULL_L(warm))))
			break;
		s->first_steady = i + 1;
	}
}

/* ---- all of it ---- */

void lull_rounds_init(struct lull_rounds *s, struct lull_reader *r, u32 process,
		      struct lull_chain *c, struct lull_units *units, const struct lull_host *h,
		      u32 without)
{
	struct lull_loop_finder f;

	*s = (struct lull_rounds){ .source = LULL_ROUNDS_NONE };
	lull_vec_init(&s->all, sizeof(struct lull_round));
	lull_loop_finder_init(&f, r, process, c, units, h, without);
	find_marks(s, &f);
	lull_loop_finder_release(&f);
	assign(s, c, units);
	set_windows(s, units);
	skip_warm_up(s);
	sum_kinds(s, units);
}

void lull_rounds_release(struct lull_rounds *s)
{
	lull_vec_release(&s->all);
}

/* Whether a name has a part of a model in it: "blocks.3", as PyTorch names modules in lists. */
static bool has_module_number(const char *name)
{
	for (const char *p = strchr(name, '.'); p; p = strchr(p + 1, '.')) {
		const char *end = p + 1;

		while (isdigit((unsigned char)*end))
			end++;
		if (p > name && isalpha((unsigned char)p[-1]) && end > p + 1 &&
		    !isalnum((unsigned char)*end) && *end != '_')
			return true;
	}
	return false;
}

static void say_how(const struct lull_rounds *s, char *text, size_t size)
{
	static const char *const texts[LULL_N_ROUNDS_SOURCES] = {
		[LULL_ROUNDS_NONE] = "",
		[LULL_ROUNDS_STEP] = "marked by the program",
		[LULL_ROUNDS_RANGE] = "marked by ranges",
		[LULL_ROUNDS_OPTIMIZER] = "found by the optimizer's updates",
		[LULL_ROUNDS_PERIOD] =
			"found as a repeating pattern of launches: nothing is marked",
		[LULL_ROUNDS_HOOK] = "found in PyTorch",
		[LULL_ROUNDS_FORWARD] = "each is a call of the model, found in PyTorch",
	};

	switch (s->source) {
	case LULL_ROUNDS_NAMED:
		snprintf(text, size, "found by ranges that repeat, such as %s%s", s->name,
			 has_module_number(s->name)
				 ? "; each is a part of the model, not a whole step"
				 : "");
		break;
	case LULL_ROUNDS_OPS:
		snprintf(text, size, "found by operators that repeat, such as %s", s->name);
		break;
	case LULL_ROUNDS_WAITS:
		snprintf(text, size, "found as what is launched from one %s to the next", s->name);
		break;
	case LULL_ROUNDS_GROUP:
		snprintf(text, size,
			 "groups of %u equal launches: nothing says where the program's own loop "
			 "begins",
			 s->n_grouped);
		break;
	default:
		snprintf(text, size, "%s", texts[s->source]);
	}
}

const char *lull_rounds_how(const struct lull_rounds *s, char *text, size_t size)
{
	size_t len;

	say_how(s, text, size);
	len = strlen(text);
	if (s->model)
		snprintf(text + len, size - len,
			 "; they lie inside %u call%s of %s: parts of the model, not steps",
			 s->n_calls, s->n_calls == 1 ? "" : "s", s->model);
	return text;
}

const char *lull_rounds_word(enum lull_rounds_source source)
{
	static const char *const words[LULL_N_ROUNDS_SOURCES] = {
		[LULL_ROUNDS_NONE] = "",	   [LULL_ROUNDS_STEP] = "program",
		[LULL_ROUNDS_RANGE] = "ranges",	   [LULL_ROUNDS_OPTIMIZER] = "optimizer",
		[LULL_ROUNDS_PERIOD] = "repeats",  [LULL_ROUNDS_HOOK] = "torch",
		[LULL_ROUNDS_FORWARD] = "forward", [LULL_ROUNDS_NAMED] = "named",
		[LULL_ROUNDS_OPS] = "operators",   [LULL_ROUNDS_WAITS] = "waits",
		[LULL_ROUNDS_GROUP] = "groups",
	};

	return words[source];
}
