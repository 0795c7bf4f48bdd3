#include "unit/unit.h"

#include "base/intern.h"

static void equal_bytes_have_equal_numbers(void **state)
{
	struct lull_intern in;

	(void)state;
	lull_intern_init(&in);
	assert_int_equal(lull_intern_add(&in, "one", 3), 0);
	assert_int_equal(lull_intern_add(&in, "", 0), 1);
	assert_int_equal(lull_intern_add(&in, "one more", 8), 2);
	assert_int_equal(lull_intern_add(&in, "one", 3), 0);
	for (u32 i = 0; i < 1000; i++)
		assert_int_equal(lull_intern_add(&in, &i, sizeof(i)), i + 3);
	assert_string_equal(lull_intern_get(&in, 0), "one");
	assert_string_equal(lull_intern_get(&in, 1), "");
	assert_string_equal(lull_intern_get(&in, 2), "one more");
	assert_int_equal(*(const u32 *)lull_intern_get(&in, 3 + 999), 999);
	lull_intern_release(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_bytes_have_equal_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
