#include "model/runsort.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

static u64 key_of(const char *at)
{
	u64 key;

	memcpy(&key, at, sizeof(key));
	return key;
}

/* Where runs begin, and n after the last. */
static void find_runs(struct lull_vec *runs, const char *at, size_t n, size_t bytes)
{
	*(size_t *)lull_vec_push(runs) = 0;
	for (size_t i = 1; i < n; i++) {
		if (key_of(at + i * bytes) < key_of(at + (i - 1) * bytes))
			*(size_t *)lull_vec_push(runs) = i;
	}
	*(size_t *)lull_vec_push(runs) = n;
}

static void merge(char *to, const char *from, const size_t run[3], size_t bytes)
{
	size_t a = run[0], b = run[1];

	to += run[0] * bytes;
	while (a < run[1] && b < run[2]) {
		size_t take = key_of(from + b * bytes) < key_of(from + a * bytes) ? b++ : a++;

		memcpy(to, from + take * bytes, bytes);
		to += bytes;
	}
	memcpy(to, from + a * bytes, (run[1] - a) * bytes);
	to += (run[1] - a) * bytes;
	memcpy(to, from + b * bytes, (run[2] - b) * bytes);
}

/*
 * Runs that follow each other in order become one. Blocks are by time, and lanes inside of them:
 * once the lanes of a block are merged, most blocks are in order.
 */
static void join(const char *at, struct lull_vec *runs, size_t bytes)
{
	size_t *first = runs->at, n = 1;

	for (size_t r = 1; r + 1 < runs->n; r++) {
		const char *next = at + first[r] * bytes;

		if (key_of(next) < key_of(next - bytes))
			first[n++] = first[r];
	}
	first[n++] = first[runs->n - 1];
	runs->n = n;
}

/* Merge neighbours from one array into the other; the list of runs gets half as long. */
static void merge_all(char *to, const char *from, struct lull_vec *runs, size_t bytes)
{
	size_t *at = runs->at, n_runs = runs->n - 1, n = 0;

	for (size_t r = 0; r < n_runs; r += 2) {
		size_t last = r + 2 <= n_runs ? at[r + 2] : at[n_runs];
		const size_t run[3] = { at[r], r + 1 < n_runs ? at[r + 1] : last, last };

		merge(to, from, run, bytes);
		at[n++] = run[0];
	}
	at[n] = at[n_runs];
	runs->n = n + 1;
}

void lull_runsort(void *at, size_t n, size_t elem_bytes)
{
	struct lull_vec runs;
	char *from = at, *to, *spare;

	if (n < 2)
		return;
	lull_vec_init(&runs, sizeof(size_t));
	find_runs(&runs, at, n, elem_bytes);
	if (runs.n > 2) {
		spare = lull_alloc(n, elem_bytes);
		to = spare;
		while (runs.n > 2) {
			char *swap = from;

			merge_all(to, from, &runs, elem_bytes);
			join(to, &runs, elem_bytes);
			from = to;
			to = swap;
		}
		if (from != at)
			memcpy(at, from, n * elem_bytes);
		free(spare);
	}
	lull_vec_release(&runs);
}
