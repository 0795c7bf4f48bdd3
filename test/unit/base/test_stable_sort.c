/*
 * The sort of everything that is shown: by the keys, and by the order of what came where they are
 * equal. qsort() promises the first half only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/sort.h"
#include "unit/random.h"

struct item {
	u32 key, number;
	u8 more[]; /* so much that elements have the size that is tested */
};

static u64 n_compared;

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	n_compared++;
	return (x->key > y->key) - (x->key < y->key);
}

static int by_key_or_back(const void *a, const void *b, void *ctx)
{
	return *(const int *)ctx * by_key(a, b);
}

static struct item *item_at(void *at, size_t i, size_t bytes)
{
	return (struct item *)((u8 *)at + i * bytes);
}

/* Keys of each kind that merging treats in its own way. */
enum shape { RANDOM, FEW, SORTED, BACKWARDS, RUNS, NEARLY, N_SHAPES };

static u32 key_of(enum shape shape, u32 i, u32 n, struct test_random *seed)
{
	switch (shape) {
	case FEW:
		return (u32)(test_random_bits(seed) % 3);
	case SORTED:
		return i / 3;
	case BACKWARDS:
		return (n - i) / 3;
	case RUNS:
		return i % 37;
	case NEARLY:
		return i + (u32)(test_random_bits(seed) % 8);
	default:
		return (u32)test_random_bits(seed);
	}
}

static void check(enum shape shape, u32 n, size_t bytes, int direction)
{
	u8 *at = lull_alloc(n + 1, bytes);
	struct test_random seed = { 1 + n };

	for (u32 i = 0; i < n; i++) {
		memset(item_at(at, i, bytes), (int)(i & 0xff), bytes);
		item_at(at, i, bytes)->key = key_of(shape, i, n, &seed);
		item_at(at, i, bytes)->number = i;
	}
	if (direction > 0)
		lull_sort(at, n, bytes, by_key);
	else
		lull_sort_r(at, n, bytes, by_key_or_back, &direction);
	for (u32 i = 0; i + 1 < n; i++) {
		const struct item *x = item_at(at, i, bytes), *y = item_at(at, i + 1, bytes);

		assert_true(direction * by_key(x, y) <= 0);
		if (x->key == y->key)
			assert_true(x->number < y->number);
	}
	/* They moved whole. */
	for (u32 i = 0; i < n; i++) {
		const struct item *x = item_at(at, i, bytes);

		for (size_t k = 0; k < bytes - sizeof(*x); k++)
			assert_int_equal(x->more[k], x->number & 0xff);
	}
	free(at);
}

static void equal_elements_keep_their_order(void **state)
{
	static const size_t sizes[] = { 8, 12, 16, 24, 32, 40, 100 };
	static const u32 lengths[] = { 0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 1000 };

	(void)state;
	for (int shape = 0; shape < N_SHAPES; shape++)
		for (size_t s = 0; s < LULL_COUNT_OF(sizes); s++)
			for (size_t l = 0; l < LULL_COUNT_OF(lengths); l++) {
				check((enum shape)shape, lengths[l], sizes[s], 1);
				check((enum shape)shape, lengths[l], sizes[s], -1);
			}
}

static void what_is_sorted_costs_one_look(void **state)
{
	u32 items[2000];

	(void)state;
	for (u32 i = 0; i < 1000; i++) {
		items[2 * i] = i / 2;
		items[2 * i + 1] = i;
	}
	n_compared = 0;
	lull_sort(items, 1000, 8, by_key);
	assert_int_equal(n_compared, 999);
}

static void nothing_may_be_sorted(void **state)
{
	(void)state;
	lull_sort(NULL, 0, 8, by_key);
	lull_sort_r(NULL, 0, 8, by_key_or_back, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_elements_keep_their_order),
		cmocka_unit_test(what_is_sorted_costs_one_look),
		cmocka_unit_test(nothing_may_be_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
