#include "model/period.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"

#define MAX_SYMBOLS   500000
#define MAX_NAMES     128
#define MAX_PER_COUNT 4 /* names that occur equally often cut at equal places */

struct name {
	u32 symbol;
	u32 count;
};

/* Two bags of symbols, to compare neighbours. */
struct bags {
	u32 *now, *before;	 /* by symbol */
	struct lull_vec touched; /* u32: symbols of `now` */
	struct lull_vec was;	 /* u32: symbols of `before` */
	size_t n_now, n_before;
};

static int by_count(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

static void bags_next(struct bags *b)
{
	u32 *swap = b->before;
	struct lull_vec list = b->was;

	for (size_t i = 0; i < b->was.n; i++)
		b->before[((u32 *)b->was.at)[i]] = 0;
	b->before = b->now;
	b->now = swap;
	b->was = b->touched;
	b->touched = list;
	b->touched.n = 0;
	b->n_before = b->n_now;
	b->n_now = 0;
}

static void bags_add(struct bags *b, u32 symbol)
{
	if (!b->now[symbol]++)
		*(u32 *)lull_vec_push(&b->touched) = symbol;
	b->n_now++;
}

/* Weighted Jaccard: what both have of what either has. */
static f64 bags_alike(const struct bags *b)
{
	size_t both = 0;

	for (size_t i = 0; i < b->touched.n; i++) {
		u32 s = ((u32 *)b->touched.at)[i];

		both += b->now[s] < b->before[s] ? b->now[s] : b->before[s];
	}
	return (f64)both / (f64)(b->n_now + b->n_before - both);
}

static void bags_clear(struct bags *b)
{
	bags_next(b);
	bags_next(b);
}

/* Fill `cuts` with where `name` occurs and n after, and `odd` with each pair of neighbours. */
static void cut(const u32 *symbols, size_t n, u32 name, struct bags *b, struct lull_vec *cuts,
		struct lull_vec *odd)
{
	cuts->n = 0;
	odd->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (symbols[i] == name) {
			if (cuts->n > 1)
				*(u8 *)lull_vec_push(odd) = bags_alike(b) < LULL_L(alike);
			if (cuts->n)
				bags_next(b);
			*(size_t *)lull_vec_push(cuts) = i;
		}
		if (cuts->n)
			bags_add(b, symbols[i]);
	}
	/* The last piece counts if it is whole; else it is left over. */
	if (cuts->n > 1 && b->n_now && bags_alike(b) >= LULL_L(alike)) {
		*(u8 *)lull_vec_push(odd) = false;
		*(size_t *)lull_vec_push(cuts) = n;
	}
	bags_clear(b);
}

static int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How much pieces far larger than usual hold beyond the usual, and how many there are. */
static size_t beyond_usual(const size_t *at, size_t n_pieces, size_t *n_large)
{
	size_t *sizes = lull_alloc(n_pieces, sizeof(*sizes)), median, beyond = 0;

	*n_large = 0;
	for (size_t i = 0; i < n_pieces; i++)
		sizes[i] = at[i + 1] - at[i];
	lull_sort(sizes, n_pieces, sizeof(*sizes), by_size);
	median = sizes[n_pieces / 2];
	for (size_t i = 0; i < n_pieces; i++) {
		if ((f64)sizes[i] <= LULL_L(large) * (f64)median)
			continue;
		beyond += sizes[i] - median;
		++*n_large;
	}
	free(sizes);
	return beyond;
}

/*
 * Whether the pieces hold most of the n launches, without what a few large ones have beyond the
 * usual. If large ones come again and again and hold much, a loop inside the step was found.
 */
static bool holds_most(const size_t *at, size_t n_pieces, size_t n)
{
	size_t n_large, beyond = beyond_usual(at, n_pieces, &n_large);
	f64 all = (f64)(at[n_pieces] - at[0]), usual = all - (f64)beyond;

	if (n_large >= LULL_LN(rounds_least) && usual < LULL_L(inner_even) * all)
		return false;
	return usual >= LULL_L(period_covers) * (f64)n;
}

static size_t share_of(size_t n, f64 share)
{
	return (size_t)(share * (f64)n);
}

/* Odd pairs among so many pieces of a loop. */
static size_t odd_allowed(size_t n_pieces)
{
	size_t share = share_of(n_pieces, LULL_L(period_odd));

	if (n_pieces < LULL_LN(period_few))
		return 0;
	return share > 2 ? share : 2;
}

/* Drop odd pieces at both ends; whether the rest is a loop. */
static bool is_loop(struct lull_vec *cuts, const struct lull_vec *odds, size_t n)
{
	const u8 *odd = odds->at;
	size_t *at = cuts->at, n_pieces, first = 0, last = odds->n, n_odd = 0;

	if (cuts->n < 3 || !odds->n)
		return false;
	for (size_t i = 0; i < share_of(odds->n, LULL_L(period_warm)); i++)
		first = odd[i] ? i + 1 : first;
	while (last > first && odd[last - 1])
		last--;
	for (size_t i = first; i < last; i++)
		n_odd += odd[i];
	n_pieces = last - first + 1;
	if (n_pieces < LULL_LN(rounds_least))
		return false;
	if (n_odd > odd_allowed(n_pieces))
		return false;
	if (!holds_most(at + first, n_pieces, n))
		return false;
	memmove(at, at + first, (last + 2 - first) * sizeof(*at));
	cuts->n = last + 2 - first;
	return true;
}

/* Names by how often they occur, most frequent first. */
static struct name *rank(const u32 *symbols, size_t n, u32 n_names)
{
	struct name *names = lull_alloc(n_names + 1, sizeof(*names));

	for (u32 i = 0; i < n_names; i++)
		names[i].symbol = i;
	for (size_t i = 0; i < n; i++)
		names[symbols[i]].count++;
	lull_sort(names, n_names, sizeof(*names), by_count);
	return names;
}

void lull_period_find(const u32 *symbols, size_t n, u32 n_names, struct lull_vec *cuts)
{
	size_t n_look = n < MAX_SYMBOLS ? n : MAX_SYMBOLS;
	struct name *names = rank(symbols, n_look, n_names);
	struct bags b = { .now = lull_alloc(n_names + 1, sizeof(u32)),
			  .before = lull_alloc(n_names + 1, sizeof(u32)) };
	struct lull_vec odd;
	u32 n_tried = 0, n_same = 0;
	bool is_found = false;

	lull_vec_init(&odd, 1);
	lull_vec_init(&b.touched, sizeof(u32));
	lull_vec_init(&b.was, sizeof(u32));
	for (u32 i = 0; i < n_names && names[i].count > 1 && n_tried < MAX_NAMES && !is_found;
	     i++) {
		n_same = i && names[i].count == names[i - 1].count ? n_same + 1 : 0;
		if (n_same >= MAX_PER_COUNT)
			continue;
		n_tried++;
		cut(symbols, n_look, names[i].symbol, &b, cuts, &odd);
		is_found = is_loop(cuts, &odd, n_look);
		if (is_found && n_look < n) {
			cut(symbols, n, names[i].symbol, &b, cuts, &odd);
			is_found = is_loop(cuts, &odd, n);
		}
	}
	if (!is_found)
		cuts->n = 0;
	lull_vec_release(&odd);
	lull_vec_release(&b.touched);
	lull_vec_release(&b.was);
	free(b.now);
	free(b.before);
	free(names);
}
