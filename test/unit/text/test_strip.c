#include "unit/unit.h"

#include "text/strip.h"

static void expect_blocks(const struct lull_strip *s, bool is_ascii, const char *text)
{
	struct lull_str to = LULL_STR_INIT;

	lull_strip_blocks(&to, s, is_ascii);
	assert_string_equal(lull_str_text(&to), text);
	lull_str_release(&to);
}

static void cells_are_as_high_as_they_are_covered(void **state)
{
	struct lull_strip s;

	(void)state;
	lull_strip_init(&s, 1000, 1800, 8);
	lull_strip_add(&s, 0, 1100);	/* the first, and what is outside */
	lull_strip_add(&s, 1250, 1300); /* half of the third */
	lull_strip_add(&s, 1399, 1400); /* a hundredth is seen, too */
	lull_strip_add(&s, 1550, 1650);
	lull_strip_add(&s, 1700, 5000);
	assert_true(s.sum_ns == 100 + 50 + 1 + 100 + 100);
	expect_blocks(&s, true, "# =. ==#");
	expect_blocks(&s, false,
		      "\xe2\x96\x88 \xe2\x96\x84\xe2\x96\x81 \xe2\x96\x84\xe2\x96\x84\xe2\x96\x88");
	lull_strip_release(&s);
}

static void what_overlaps_is_no_higher_than_a_cell(void **state)
{
	struct lull_strip s;

	(void)state;
	lull_strip_init(&s, 0, 100, 2);
	lull_strip_add(&s, 0, 100);
	lull_strip_add(&s, 0, 100);
	expect_blocks(&s, true, "##");
	assert_int_equal(lull_strip_cell(&s, 49), 0);
	assert_int_equal(lull_strip_cell(&s, 50), 1);
	assert_int_equal(lull_strip_cell(&s, 100), 2);
	lull_strip_release(&s);
}

static void expect_ruler(u64 dur_ns, size_t n, const char *text)
{
	struct lull_str to = LULL_STR_INIT;

	lull_strip_ruler(&to, dur_ns, n);
	assert_string_equal(lull_str_text(&to), text);
	lull_str_release(&to);
}

static void a_ruler_has_round_numbers_and_a_unit(void **state)
{
	(void)state;
	expect_ruler(40000000, 40, "|0 ms     |10       |20       |30       ");
	expect_ruler(3, 20, "|0 ns        |2     ");
	expect_ruler(7000000000ull, 30, "|0 s                 |5       ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_as_high_as_they_are_covered),
		cmocka_unit_test(what_overlaps_is_no_higher_than_a_cell),
		cmocka_unit_test(a_ruler_has_round_numbers_and_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
