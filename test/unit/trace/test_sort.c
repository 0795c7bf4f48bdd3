#include "unit/unit.h"

#include "trace/row_sort.h"

#define MAX_KEYS 65536u

static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* The order by its definition; `row` makes it stable. */
static int compare(const void *a, const void *b)
{
	const struct lull_sort_key *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void check(struct lull_sort_key *keys, size_t n)
{
	struct lull_sort_key *expect = malloc((n + 1) * sizeof(*keys));
	struct lull_sort_key *spare = malloc((n + 1) * sizeof(*keys));

	for (size_t i = 0; i < n; i++)
		keys[i].row = (u32)i;
	memcpy(expect, keys, n * sizeof(*keys));
	qsort(expect, n, sizeof(*expect), compare);
	assert_memory_equal(lull_sort_keys(keys, spare, n), expect, n * sizeof(*keys));
	free(expect);
	free(spare);
}

static void random_keys_are_sorted_stably(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 3, 100, 5000, MAX_KEYS };
	static const u32 n_lanes[] = { 1, 2, 30, 70000 };
	struct lull_sort_key *keys = malloc(MAX_KEYS * sizeof(*keys));
	u64 seed = 5;

	(void)state;
	for (size_t c = 0; c < LULL_COUNT_OF(counts); c++)
		for (size_t l = 0; l < LULL_COUNT_OF(n_lanes); l++) {
			for (size_t i = 0; i < counts[c]; i++) {
				keys[i].lane = (u32)(next_random(&seed) % n_lanes[l]);
				keys[i].start_ns = next_random(&seed) % 1000;
				keys[i].dur_ns = next_random(&seed) % 3;
			}
			check(keys, counts[c]);
		}
	free(keys);
}

/*
 * As programs emit: nearly in order, in reverse, in two interleaved halves, children before
 * parents.
 */
static void usual_orders_are_sorted(void **state)
{
	struct lull_sort_key *keys = calloc(MAX_KEYS, sizeof(*keys));

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		for (size_t i = 0; i < MAX_KEYS; i++) {
			u64 start[] = { i ^ 3, MAX_KEYS - i, i % 2 * MAX_KEYS + i, i / 4 * 4 };

			keys[i].lane = 1 + (u32)(i / 1500 % 20);
			keys[i].start_ns = start[kind];
			keys[i].dur_ns = i % 4;
		}
		check(keys, MAX_KEYS);
	}
	free(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_keys_are_sorted_stably),
		cmocka_unit_test(usual_orders_are_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
