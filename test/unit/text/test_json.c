#include "unit/unit.h"

#include "text/json.h"

static void expect_text(const char *text, size_t len, const char *as)
{
	struct unit_stream s;
	struct lull_json j;

	unit_open(&s);
	lull_json_init(&j, s.to);
	lull_json_bytes(&j, text, len);
	unit_expect(&s, as);
}

#define EXPECT_TEXT(text, as) expect_text(text, sizeof(text) - 1, as)

static void nesting_places_commas_and_colons(void **state)
{
	struct unit_stream s;
	struct lull_json j;

	(void)state;
	unit_open(&s);
	lull_json_init(&j, s.to);
	lull_json_object(&j);
	lull_json_key(&j, "a");
	lull_json_array(&j);
	lull_json_u64(&j, UINT64_MAX);
	lull_json_i64(&j, -1);
	lull_json_object(&j);
	lull_json_end(&j);
	lull_json_end(&j);
	lull_json_key(&j, "b");
	lull_json_bool(&j, true);
	lull_json_key(&j, "c");
	lull_json_text(&j, NULL);
	lull_json_end(&j);
	unit_expect(&s, "{\"a\":[18446744073709551615,-1,{}],\"b\":true,\"c\":null}");
}

static void pretty_output_is_indented(void **state)
{
	struct unit_stream s;
	struct lull_json j;

	(void)state;
	unit_open(&s);
	lull_json_init(&j, s.to);
	j.is_pretty = true;
	lull_json_array(&j);
	lull_json_object(&j);
	lull_json_key(&j, "a");
	lull_json_u64(&j, 1);
	lull_json_end(&j);
	lull_json_array(&j);
	lull_json_end(&j);
	lull_json_end(&j);
	unit_expect(&s, "[\n  {\n    \"a\": 1\n  },\n  []\n]\n");
}

static void control_characters_and_quotes_are_escaped(void **state)
{
	(void)state;
	EXPECT_TEXT("a\"b\\c\n\r\t\b\f\x01\x7f\0z",
		    "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u007f\\u0000z\"");
}

static void valid_utf8_passes_unchanged(void **state)
{
	(void)state;
	EXPECT_TEXT("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		    "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

static void each_bad_byte_becomes_the_replacement_character(void **state)
{
	(void)state;
	EXPECT_TEXT("\xff", "\"\\ufffd\"");
	EXPECT_TEXT("a\xc3", "\"a\\ufffd\"");
	EXPECT_TEXT("\xc0\x80", "\"\\ufffd\\ufffd\"");
	EXPECT_TEXT("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	EXPECT_TEXT("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	EXPECT_TEXT("\xe2\x28\xa1", "\"\\ufffd(\\ufffd\"");
}

static void numbers_read_back_as_they_were(void **state)
{
	struct unit_stream s;
	struct lull_json j;

	(void)state;
	unit_open(&s);
	lull_json_init(&j, s.to);
	lull_json_array(&j);
	lull_json_f64(&j, 0.1);
	lull_json_f64(&j, 1.0 / 3.0);
	lull_json_f64(&j, 1e300 * 1e300);
	lull_json_fixed(&j, 2.0 / 3.0, 2);
	lull_json_end(&j);
	unit_expect(&s, "[0.1,0.33333333333333331,null,0.67]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_places_commas_and_colons),
		cmocka_unit_test(pretty_output_is_indented),
		cmocka_unit_test(control_characters_and_quotes_are_escaped),
		cmocka_unit_test(valid_utf8_passes_unchanged),
		cmocka_unit_test(each_bad_byte_becomes_the_replacement_character),
		cmocka_unit_test(numbers_read_back_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
