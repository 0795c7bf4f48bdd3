#include "model/rounds.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/hash.h"
#include "base/sort.h"
#include "model/period.h"
#include "model/span.h"

/* A leading step this much longer than the median is warm-up, in percent. */
#define WARM_PCT 150
/* Fewer steps than this say nothing about which are longer. */
#define WARM_MIN 6

static void add(struct lull_rounds *s, u64 mark_ns)
{
	*(struct lull_round *)lull_vec_push(&s->all) = (struct lull_round){ .mark_ns = mark_ns };
}

static int by_mark(const void *a, const void *b)
{
	const struct lull_round *x = a, *y = b;

	return (x->mark_ns > y->mark_ns) - (x->mark_ns < y->mark_ns);
}

/* The loop of the thread with the most steps, of those the program said or that hooks found. */
static void from_table(struct lull_rounds *s, struct lull_reader *r, u32 process, u8 source)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	u32 *counts = lull_alloc(n_lanes + 1, sizeof(*counts)), best = 0;
	struct lull_step_cols cols;
	struct lull_cursor c;

	for (int pass = 0; pass < 2; pass++) {
		lull_cursor_init(&c, r, LULL_TABLE_step, 0, UINT64_MAX);
		while ((n = lull_cursor_next(&c, &cols)) > 0) {
			for (size_t i = 0; i < n; i++) {
				u32 lane = cols.lane[i];
				u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);

				if (!lane || lanes[lane - 1].process != process ||
				    cols.source[i] != source)
					continue;
				if (!pass) {
					counts[lane]++;
					best = counts[lane] > counts[best] ? lane : best;
				} else if (lane == best) {
					add(s, cols.start_ns[i]);
					s->last_ns = end_ns > s->last_ns ? end_ns : s->last_ns;
				}
			}
		}
		lull_cursor_release(&c);
	}
	free(counts);
	s->source = source == LULL_STEP_SAID ? LULL_ROUNDS_STEP : LULL_ROUNDS_HOOK;
}

/* A name without its digits: step_1 and step_2 are the same. */
static u64 shape_of(const char *name)
{
	u64 hash = 1469598103934665603ull;

	for (; *name; name++) {
		unsigned char ch = isdigit((unsigned char)*name) ? '#' : (unsigned char)*name;

		if (ch == '#' && isdigit((unsigned char)name[1]))
			continue;
		hash = (hash ^ (u64)tolower(ch)) * 1099511628211ull;
	}
	return hash;
}

static bool is_update(const struct lull_host_event *e, const char *name)
{
	return e->kind <= LULL_HOST_OP && !strncasecmp(name, "Optimizer.step", 14);
}

/*
 * Marks from the most frequent kind of event that `source` accepts. An update of the optimizer ends
 * a step; the others begin one.
 */
static void from_events(struct lull_rounds *s, struct lull_reader *r, const struct lull_host *h,
			enum lull_rounds_source source)
{
	const struct lull_host_event *events = h->events.at;
	struct lull_map counts;
	u64 best = 0;
	u32 most = 0;

	lull_map_init(&counts);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < h->events.n; i++) {
			const struct lull_host_event *e = &events[i];
			const char *name;
			u64 shape;

			if (source == LULL_ROUNDS_RANGE ? !(e->kind == LULL_HOST_RANGE)
							: e->kind > LULL_HOST_OP)
				continue;
			name = lull_host_name(e, r);
			if (source == LULL_ROUNDS_RANGE ? !lull_name_is_step(name)
							: !is_update(e, name))
				continue;
			shape = shape_of(name);
			if (!pass) {
				u32 n = ++*lull_map_add(&counts, shape, NULL);

				best = n > most ? shape : best;
				most = n > most ? n : most;
			} else if (shape == best) {
				add(s, source == LULL_ROUNDS_RANGE ? e->begin_ns : e->end_ns);
				s->last_ns = e->end_ns > s->last_ns ? e->end_ns : s->last_ns;
				s->name = name;
			}
		}
	}
	lull_map_release(&counts);
	s->source = source;
}

/* What a call launched, as a small number: kernels by name, copies by direction. */
static u32 symbol_of(const struct lull_unit *unit, const struct lull_units *units,
		     const struct lull_launch_row *launches, struct lull_map *numbers)
{
	u64 key = (u64)unit->kind << 40;
	bool is_new;
	u32 *number;

	if (unit->kind == LULL_UNIT_COPY)
		key |= lull_units_copy(units, unit)->direction;
	else if (unit->kind != LULL_UNIT_MEMSET && unit->what)
		key |= launches[unit->what - 1].name;
	number = lull_map_add(numbers, key, &is_new);
	if (is_new)
		*number = (u32)numbers->n - 1;
	return *number;
}

static void from_period(struct lull_rounds *s, struct lull_reader *r, const struct lull_chain *c,
			const struct lull_units *units)
{
	size_t n_rows, n = 0;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n_rows);
	u32 last = c->n_chains ? c->first[1] : 0;
	u32 *symbols = lull_alloc(last + 1, sizeof(*symbols));
	u32 *nodes = lull_alloc(last + 1, sizeof(*nodes));
	struct lull_map numbers;
	struct lull_vec cuts;

	lull_map_init(&numbers);
	lull_vec_init(&cuts, sizeof(size_t));
	for (u32 i = 0; i < last; i++) {
		if (c->nodes[i].unit == LULL_NONE)
			continue;
		nodes[n] = i;
		symbols[n++] = symbol_of(&units->at[c->nodes[i].unit], units, launches, &numbers);
	}
	lull_period_find(symbols, n, (u32)numbers.n, &cuts);
	for (size_t i = 0; i < cuts.n; i++) {
		size_t at = ((size_t *)cuts.at)[i];
		u64 mark_ns =
			at < n ? lull_chain_gap_ns(c, nodes[at]) : c->nodes[nodes[n - 1]].end_ns;

		if (i + 1 < cuts.n)
			add(s, mark_ns);
		else
			s->last_ns = mark_ns;
	}
	s->source = LULL_ROUNDS_PERIOD;
	lull_map_release(&numbers);
	lull_vec_release(&cuts);
	free(symbols);
	free(nodes);
}

static void forget(struct lull_rounds *s)
{
	s->all.n = 0;
	s->last_ns = 0;
	s->name = NULL;
	s->source = LULL_ROUNDS_NONE;
}

static void find_marks(struct lull_rounds *s, struct lull_reader *r, u32 process,
		       const struct lull_chain *c, const struct lull_units *units,
		       const struct lull_host *h, u32 without)
{
	if (!(without & LULL_WITHOUT_STEPS))
		from_table(s, r, process, LULL_STEP_SAID);
	if (!s->all.n) {
		forget(s);
		from_events(s, r, h, LULL_ROUNDS_RANGE);
	}
	if (!s->all.n && !(without & LULL_WITHOUT_STEPS)) {
		forget(s);
		from_table(s, r, process, LULL_STEP_FOUND);
	}
	/* One step that is marked is one step: nothing is looked for inside it. */
	if (!s->all.n) {
		forget(s);
		from_period(s, r, c, units);
	}
	/* An update ends a step: there have to be two to have one whole step between them. */
	if (!s->all.n) {
		forget(s);
		from_events(s, r, h, LULL_ROUNDS_OPTIMIZER);
		if (s->all.n < 3)
			forget(s);
		else
			s->all.n--;
	}
	if (s->all.n)
		lull_sort(s->all.at, s->all.n, sizeof(struct lull_round), by_mark);
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

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Step 0 never counts: buffers, lazy loading. Nor do those after it that are far too long. */
static void skip_warm_up(struct lull_rounds *s)
{
	u64 *dur_ns = lull_alloc(s->all.n + 1, sizeof(*dur_ns)), median_ns;
	u32 n = (u32)s->all.n, i;

	s->first_steady = n ? 1 : 0;
	if (n >= WARM_MIN) {
		for (i = 0; i < n; i++)
			dur_ns[i] = lull_round_end_ns(s, i) - lull_round_begin_ns(s, i);
		lull_sort(dur_ns, n, sizeof(*dur_ns), by_value);
		median_ns = dur_ns[n / 2];
		for (i = 1;
		     i < n / 2 && (lull_round_end_ns(s, i) - lull_round_begin_ns(s, i)) * 100 >
					  median_ns * WARM_PCT;
		     i++)
			s->first_steady = i + 1;
	}
	free(dur_ns);
}

void lull_rounds_init(struct lull_rounds *s, struct lull_reader *r, u32 process,
		      struct lull_chain *c, struct lull_units *units, const struct lull_host *h,
		      u32 without)
{
	*s = (struct lull_rounds){ .source = LULL_ROUNDS_NONE };
	lull_vec_init(&s->all, sizeof(struct lull_round));
	find_marks(s, r, process, c, units, h, without);
	assign(s, c, units);
	set_windows(s, units);
	skip_warm_up(s);
}

void lull_rounds_release(struct lull_rounds *s)
{
	lull_vec_release(&s->all);
}
