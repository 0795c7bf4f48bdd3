#include "unit/unit.h"

#include "text/term.h"

static void durations_have_three_digits_and_a_unit(void **state)
{
	(void)state;
	assert_string_equal(lull_format_ns(0).text, "0 ns");
	assert_string_equal(lull_format_ns(999).text, "999 ns");
	assert_string_equal(lull_format_ns(1234).text, "1.23 us");
	assert_string_equal(lull_format_ns(1234567).text, "1.23 ms");
	assert_string_equal(lull_format_ns(123456789).text, "123 ms");
	assert_string_equal(lull_format_ns(12300000000).text, "12.3 s");
	assert_string_equal(lull_format_ns(312000000000).text, "5 min 12 s");
	assert_string_equal(lull_format_ns(3600000000000 * 26).text, "26 h 0 min");
}

static void rounding_moves_to_the_next_unit(void **state)
{
	(void)state;
	assert_string_equal(lull_format_ns(999999).text, "1.00 ms");
	assert_string_equal(lull_format_ns(9996).text, "10.0 us");
	assert_string_equal(lull_format_count(999999).text, "1.00 M");
}

static void bytes_and_counts_have_their_own_steps(void **state)
{
	(void)state;
	assert_string_equal(lull_format_bytes(512).text, "512 B");
	assert_string_equal(lull_format_bytes(4718592).text, "4.50 MiB");
	assert_string_equal(lull_format_bytes(UINT64_MAX).text, "16384 PiB");
	assert_string_equal(lull_format_count(999).text, "999");
	assert_string_equal(lull_format_count(12345678).text, "12.3 M");
}

static void what_is_nearly_all_is_not_all(void **state)
{
	(void)state;
	assert_string_equal(lull_format_share(0).text, "0");
	assert_string_equal(lull_format_share(0.994).text, "99");
	assert_string_equal(lull_format_share(0.9964).text, "99.6");
	assert_string_equal(lull_format_share(0.99999).text, "99.9");
	assert_string_equal(lull_format_share(1).text, "100");
}

static void digits_are_grouped_by_three(void **state)
{
	(void)state;
	assert_string_equal(lull_format_grouped(0).text, "0");
	assert_string_equal(lull_format_grouped(-123).text, "-123");
	assert_string_equal(lull_format_grouped(1234567).text, "1,234,567");
	assert_string_equal(lull_format_grouped(INT64_MIN).text, "-9,223,372,036,854,775,808");
	assert_string_equal(lull_format_group_text("1234.5678").text, "1,234.5678");
}

static void columns_are_characters_not_bytes(void **state)
{
	(void)state;
	assert_int_equal(lull_term_columns("\xc3\xa9\xe2\x80\xa6"), 2);
}

static void wrapped_lines_stay_within_the_width(void **state)
{
	struct unit_stream s;

	(void)state;
	unit_open(&s);
	lull_term_wrap(s.to, "one two three incomprehensibly four", 2, 12);
	unit_expect(&s, "one two\n  three\n  incomprehensibly\n  four\n");
}

static void a_file_is_no_terminal(void **state)
{
	FILE *f = fopen("/dev/null", "w");

	(void)state;
	assert_non_null(f);
	assert_false(lull_term_is_tty(f));
	assert_false(lull_term_has_colour(f));
	assert_int_equal(lull_term_width(f), LULL_TERM_MIN_WIDTH);
	assert_string_equal(lull_term_colour(LULL_COLOUR_RED, false), "");
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_three_digits_and_a_unit),
		cmocka_unit_test(rounding_moves_to_the_next_unit),
		cmocka_unit_test(bytes_and_counts_have_their_own_steps),
		cmocka_unit_test(what_is_nearly_all_is_not_all),
		cmocka_unit_test(digits_are_grouped_by_three),
		cmocka_unit_test(columns_are_characters_not_bytes),
		cmocka_unit_test(wrapped_lines_stay_within_the_width),
		cmocka_unit_test(a_file_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
