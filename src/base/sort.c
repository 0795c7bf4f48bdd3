#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

/* Shorter runs are made longer by insertion, which is faster than merging up to about here. */
#define MIN_RUN 16u

struct order {
	size_t bytes;
	int (*plain)(const void *, const void *);
	int (*with)(const void *, const void *, void *);
	void *ctx;
};

static inline bool is_above(const struct order *o, const char *a, const char *b)
{
	/* One of them is there. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
	return (o->plain ? o->plain(a, b) : o->with(a, b, o->ctx)) > 0;
}

/* Sizes that are frequent are known to the compiler. */
static inline void copy(char *to, const char *from, size_t bytes)
{
	switch (bytes) {
	case 8:
		memcpy(to, from, 8);
		return;
	case 16:
		memcpy(to, from, 16);
		return;
	case 24:
		memcpy(to, from, 24);
		return;
	case 32:
		memcpy(to, from, 32);
		return;
	default:
		memcpy(to, from, bytes);
	}
}

/* Where the ascending run from `first` on ends. */
static size_t run_end(const struct order *o, const char *at, size_t first, size_t n)
{
	size_t i = first + 1;

	while (i < n && !is_above(o, at + (i - 1) * o->bytes, at + i * o->bytes))
		i++;
	return i;
}

/* Bring elements [sorted, end) to their places after `first`. */
static void insert(const struct order *o, char *at, const size_t run[3], char *spare)
{
	size_t first = run[0], end = run[2];

	for (size_t i = run[1]; i < end; i++) {
		size_t to = i;

		while (to > first && is_above(o, at + (to - 1) * o->bytes, at + i * o->bytes))
			to--;
		if (to == i)
			continue;
		copy(spare, at + i * o->bytes, o->bytes);
		memmove(at + (to + 1) * o->bytes, at + to * o->bytes, (i - to) * o->bytes);
		copy(at + to * o->bytes, spare, o->bytes);
	}
}

/* Where runs begin, and n after the last. */
static void find_runs(const struct order *o, char *at, size_t n, char *spare, struct lull_vec *runs)
{
	for (size_t i = 0; i < n;) {
		size_t end = run_end(o, at, i, n), least = n - i < MIN_RUN ? n : i + MIN_RUN;

		*(size_t *)lull_vec_push(runs) = i;
		if (end < least) {
			insert(o, at, (const size_t[3]){ i, end, least }, spare);
			end = least;
		}
		i = end;
	}
	*(size_t *)lull_vec_push(runs) = n;
}

/* How many of the `n` elements at `at` stay before `one`; all that are equal do, or none. */
static size_t n_before(const struct order *o, const char *at, size_t n, const char *one,
		       bool has_equal)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *middle = at + mid * o->bytes;

		if (has_equal ? !is_above(o, middle, one) : is_above(o, one, middle))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Merge two runs. What lies before the first of the second and after the last of the first moves
 * at once: in what is nearly sorted that is most of it.
 */
static void merge(const struct order *o, char *to, const char *from, const size_t run[3])
{
	const char *a = from + run[0] * o->bytes, *a_end = from + run[1] * o->bytes;
	const char *b = a_end, *b_end = from + run[2] * o->bytes, *end = b_end;
	size_t n = n_before(o, a, run[1] - run[0], b, true) * o->bytes;

	to += run[0] * o->bytes;
	memcpy(to, a, n);
	to += n;
	a += n;
	if (a < a_end)
		end = b + n_before(o, b, run[2] - run[1], a_end - o->bytes, false) * o->bytes;
	while (a < a_end && b < end) {
		const char **least = is_above(o, a, b) ? &b : &a;

		copy(to, *least, o->bytes);
		*least += o->bytes;
		to += o->bytes;
	}
	memcpy(to, a, (size_t)(a_end - a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b));
}

/* Merge neighbours from one array into the other; the list of runs gets half as long. */
static void merge_all(const struct order *o, char *to, const char *from, struct lull_vec *runs)
{
	size_t *at = runs->at, n_runs = runs->n - 1, n = 0;

	for (size_t r = 0; r < n_runs; r += 2) {
		size_t last = r + 2 <= n_runs ? at[r + 2] : at[n_runs];
		const size_t run[3] = { at[r], r + 1 < n_runs ? at[r + 1] : last, last };

		if (run[1] < run[2])
			merge(o, to, from, run);
		else
			memcpy(to + run[0] * o->bytes, from + run[0] * o->bytes,
			       (run[1] - run[0]) * o->bytes);
		at[n++] = run[0];
	}
	at[n] = at[n_runs];
	runs->n = n + 1;
}

static void sort(const struct order *o, char *at, size_t n)
{
	struct lull_vec runs;
	char *spare, *from = at, *to;

	if (n < 2 || run_end(o, at, 0, n) == n)
		return;
	lull_vec_init(&runs, sizeof(size_t));
	to = spare = lull_realloc(NULL, n, o->bytes);
	find_runs(o, at, n, spare, &runs);
	while (runs.n > 2) {
		char *swap = from;

		merge_all(o, to, from, &runs);
		from = to;
		to = swap;
	}
	if (from != at)
		memcpy(at, from, n * o->bytes);
	free(spare);
	lull_vec_release(&runs);
}

void lull_sort(void *at, size_t n, size_t elem_bytes, int (*compare)(const void *, const void *))
{
	const struct order o = { .bytes = elem_bytes, .plain = compare };

	sort(&o, at, n);
}

void lull_sort_r(void *at, size_t n, size_t elem_bytes,
		 int (*compare)(const void *, const void *, void *), void *ctx)
{
	const struct order o = { .bytes = elem_bytes, .with = compare, .ctx = ctx };

	sort(&o, at, n);
}

static int by_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static int by_f64(const void *a, const void *b)
{
	f64 x = *(const f64 *)a, y = *(const f64 *)b;

	return (x > y) - (x < y);
}

void lull_sort_u64(u64 *at, size_t n)
{
	lull_sort(at, n, sizeof(*at), by_u64);
}

void lull_sort_f64(f64 *at, size_t n)
{
	lull_sort(at, n, sizeof(*at), by_f64);
}
