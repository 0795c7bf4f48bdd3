#include "unit/unit.h"

#include "base/vec.h"

struct pair {
	u32 other;
	u64 key;
};

static void vec_push_gives_zeroed_elements_that_stay(void **state)
{
	struct lull_vec v;

	(void)state;
	lull_vec_init(&v, sizeof(u64));
	for (u64 i = 0; i < 1000; i++) {
		u64 *at = lull_vec_push(&v);

		assert_int_equal(*at, 0);
		*at = i;
	}
	for (u64 i = 0; i < 1000; i++)
		assert_int_equal(*(u64 *)lull_vec_get(&v, i), i);
	lull_vec_release(&v);
	assert_int_equal(v.n, 0);
}

static void vec_upper_counts_keys_up_to_the_one_asked(void **state)
{
	static const u64 keys[] = { 10, 20, 20, 30, UINT64_MAX };
	struct lull_vec v;

	(void)state;
	lull_vec_init(&v, sizeof(struct pair));
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 10), 0);
	for (size_t i = 0; i < LULL_COUNT_OF(keys); i++)
		((struct pair *)lull_vec_push(&v))->key = keys[i];
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 9), 0);
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 10), 1);
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 20), 3);
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 29), 3);
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), 31), 4);
	assert_int_equal(lull_vec_upper(&v, offsetof(struct pair, key), UINT64_MAX), 5);
	lull_vec_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_push_gives_zeroed_elements_that_stay),
		cmocka_unit_test(vec_upper_counts_keys_up_to_the_one_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
