#include "unit/unit.h"

#include <string.h>

#include "text/jcheck.h"

static void expect_good(const char *text)
{
	size_t off;
	const char *wrong = lull_jcheck(text, strlen(text), &off);

	if (wrong)
		fail_msg("%s: %s at %zu", text, wrong, off);
}

static void expect_bad(const char *text, const char *words, size_t where)
{
	size_t off;
	const char *wrong = lull_jcheck(text, strlen(text), &off);

	assert_non_null(wrong);
	assert_string_equal(wrong, words);
	assert_int_equal(off, where);
}

static void what_is_json_is_accepted(void **state)
{
	(void)state;
	expect_good("{}");
	expect_good(" [ ] ");
	expect_good(
		"\t{\"a\" : [1, -2.5e+3, 0, 0.5, 1E2, \"x\\u00e4\\n\\/\", true, false, null]}\r\n");
	expect_good("\"\"");
	expect_good("[[[[{\"\":{\"\":[]}}]]]]");
	expect_good("\"\xc3\xa4 \xf0\x9f\x98\x80\"");
	expect_good("-0");
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
	(void)state;
	expect_bad("", "the text ends too early", 0);
	expect_bad("  ", "the text ends too early", 2);
	expect_bad("{", "a string in double quotes was expected", 1);
	expect_bad("{\"a\"}", "a colon was expected after a key", 4);
	expect_bad("{\"a\":1,}", "a string in double quotes was expected", 7);
	expect_bad("[1,]", "a value was expected", 3);
	expect_bad("[1 2]", "a comma or the end was expected", 3);
	expect_bad("[1}", "a comma or the end was expected", 2);
	expect_bad("{} {}", "something stands after the value", 3);
	expect_bad("01", "something stands after the value", 1);
	expect_bad("-", "a digit was expected", 1);
	expect_bad("1.", "a digit was expected", 2);
	expect_bad("1e", "a digit was expected", 2);
	expect_bad("NaN", "a value was expected", 0);
	expect_bad("'a'", "a value was expected", 0);
	expect_bad("\"a", "the text ends in a string", 2);
	expect_bad("\"a\\", "the text ends in a string", 3);
	expect_bad("\"\\x\"", "an escape that JSON does not have", 2);
	expect_bad("\"\\u12g4\"", "\\u has to be followed by four hexadecimal digits", 2);
	expect_bad("\"a\nb\"", "a control character in a string", 2);
	expect_bad("\"\xff\"", "bytes that are not UTF-8", 1);
}

static void depth_has_a_limit(void **state)
{
	char text[2 * LULL_JCHECK_DEPTH + 4];
	size_t off;

	(void)state;
	memset(text, '[', LULL_JCHECK_DEPTH);
	memset(text + LULL_JCHECK_DEPTH, ']', LULL_JCHECK_DEPTH);
	/* The innermost is empty, and never stored. */
	assert_null(lull_jcheck(text, (size_t)2 * LULL_JCHECK_DEPTH, &off));
	memset(text, '[', LULL_JCHECK_DEPTH + 2);
	memset(text + LULL_JCHECK_DEPTH + 2, ']', LULL_JCHECK_DEPTH + 2);
	assert_string_equal(lull_jcheck(text, sizeof(text), &off),
			    "too many objects and arrays in each other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_json_is_accepted),
		cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
		cmocka_unit_test(depth_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
