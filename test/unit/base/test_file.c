#include "unit/unit.h"

#include <unistd.h>

#include "base/file.h"
#include "text/nearest.h"

static const char cpuinfo[] = "processor\t: 0\n"
			      "model name\t: Some CPU @ 2 GHz\n"
			      "model\t: 7\n"
			      "empty:\n"
			      "NAME=\"Quoted Name\"\n";

static void check_value(const char *key, char separator, const char *value)
{
	struct lull_str to = LULL_STR_INIT;

	assert_true(lull_file_value(cpuinfo, key, separator, &to));
	assert_string_equal(lull_str_text(&to), value);
	lull_str_release(&to);
}

static void values_are_found_by_their_whole_key(void **state)
{
	struct lull_str to = LULL_STR_INIT;

	(void)state;
	check_value("model name", ':', "Some CPU @ 2 GHz");
	check_value("model", ':', "7");
	check_value("empty", ':', "");
	check_value("NAME", '=', "Quoted Name");
	assert_false(lull_file_value(cpuinfo, "mode", ':', &to));
	assert_false(lull_file_value("", "model", ':', &to));
	lull_str_release(&to);
}

static void a_missing_file_is_false_and_empty(void **state)
{
	struct lull_str text = LULL_STR_INIT;
	i64 value = 5;

	(void)state;
	lull_str_puts(&text, "old");
	assert_false(lull_file_read("/nonexistent/file", &text));
	assert_string_equal(lull_str_text(&text), "");
	assert_false(lull_file_line("/dev/null", &text));
	assert_false(lull_file_i64("/nonexistent/file", &value));
	assert_int_equal(value, 5);
	lull_str_release(&text);
}

static void numbers_and_lines_are_read_from_files(void **state)
{
	struct lull_str text = LULL_STR_INIT;
	char path[] = "/tmp/lull-test-XXXXXX";
	int fd = mkstemp(path);
	i64 value = 0;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "-42\nsecond\n", 11), 11);
	close(fd);
	assert_true(lull_file_i64(path, &value));
	assert_int_equal(value, -42);
	assert_true(lull_file_line(path, &text));
	assert_string_equal(text.at, "-42");
	lull_str_release(&text);
	unlink(path);
}

static const char *nearest_of(const char *word)
{
	static const char *const names[] = { "profile", "start", "stop", "status", "why" };
	struct lull_nearest near = { .word = word };

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		lull_nearest_add(&near, names[i]);
	return near.best ? near.best : "";
}

static void the_nearest_name_needs_few_edits(void **state)
{
	(void)state;
	assert_string_equal(nearest_of("profiel"), "profile");
	assert_string_equal(nearest_of("statsu"), "status");
	assert_string_equal(nearest_of("stpo"), "stop");
	assert_string_equal(nearest_of("wy"), "why");
	assert_string_equal(nearest_of("kernel"), "");
	assert_string_equal(nearest_of(""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_by_their_whole_key),
		cmocka_unit_test(a_missing_file_is_false_and_empty),
		cmocka_unit_test(numbers_and_lines_are_read_from_files),
		cmocka_unit_test(the_nearest_name_needs_few_edits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
