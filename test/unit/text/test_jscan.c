#include "unit/jscan_cases.h"

#include <unistd.h>

#include "text/jscan.h"
#include "base/mem.h"
#include "base/stream.h"

static struct lull_jtext text_of(const char *text)
{
	return (struct lull_jtext){ text, strlen(text), strchr(text, '\\') != NULL };
}

/* ---- numbers ---- */

static void check_milli(const char *text, i64 expect)
{
	struct lull_jtext t = text_of(text);
	i64 value = -1;

	assert_true(lull_jtext_milli(&t, &value));
	assert_int_equal(value, expect);
}

static void microseconds_become_nanoseconds_to_the_last_digit(void **state)
{
	(void)state;
	check_milli("3844341732647.001", 3844341732647001);
	check_milli("1695835542513910", 1695835542513910000);
	check_milli("1695835542513910.123", 1695835542513910123);
	check_milli("0", 0);
	check_milli("0.001", 1);
	check_milli("1.5", 1500);
	check_milli("1.25", 1250);
	check_milli("-3.125", -3125);
	check_milli("239.0524", 239052);
	check_milli("239.0525", 239053);
	check_milli("239.05249999", 239052);
	check_milli("12345678.9", 12345678900);
	check_milli("123456789012", 123456789012000);
	check_milli("1.5e3", 1500000);
	check_milli("25E-1", 2500);
}

static void what_is_no_number_is_absent(void **state)
{
	static const char *const texts[] = {
		"",    "NaN",	 "Infinity", "-Infinity",	    "null", "true", "-",
		"abc", "1.2.3x", "1e400",    "99999999999999999999"
	};
	i64 value;
	f64 f;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(texts); i++) {
		struct lull_jtext t = text_of(texts[i]);

		if (strcmp(texts[i], "1.2.3x"))
			assert_false(lull_jtext_milli(&t, &value));
		if (i < 8) {
			assert_false(lull_jtext_i64(&t, &value));
			assert_false(lull_jtext_f64(&t, &f));
		}
	}
}

static void whole_numbers_keep_all_digits(void **state)
{
	struct lull_jtext t;
	i64 value;

	(void)state;
	t = text_of("139829478125504");
	assert_true(lull_jtext_i64(&t, &value));
	assert_int_equal(value, 139829478125504);
	t = text_of("18446744073709551615");
	assert_true(lull_jtext_i64(&t, &value));
	assert_int_equal((u64)value, UINT64_MAX);
	t = text_of("-9223372036854775808");
	assert_true(lull_jtext_i64(&t, &value));
	assert_int_equal(value, INT64_MIN);
	t = text_of("3.9");
	assert_true(lull_jtext_i64(&t, &value));
	assert_int_equal(value, 3);
	t = text_of("2e3");
	assert_true(lull_jtext_i64(&t, &value));
	assert_int_equal(value, 2000);
}

/* ---- texts ---- */

static void check_text(const char *text, const char *expect, size_t n_repaired)
{
	struct lull_str to = LULL_STR_INIT;
	struct lull_jtext t = text_of(text);

	assert_int_equal(lull_jtext_add(&to, &t), n_repaired);
	assert_string_equal(lull_str_text(&to), expect);
	lull_str_release(&to);
}

static void escapes_are_resolved_and_nonsense_is_repaired(void **state)
{
	(void)state;
	check_text("plain", "plain", 0);
	check_text("a\\n\\t\\\"\\\\\\/b", "a\n\t\"\\/b", 0);
	check_text("\\u00e9\\u20ac", "é€", 0);
	check_text("\\ud83d\\ude00", "😀", 0);
	check_text("é€😀", "é€😀", 0);
	check_text("\\ud83d", "\xef\xbf\xbd", 1);
	check_text("\\ud83dx", "\xef\xbf\xbdx", 1);
	check_text("\\ude00", "\xef\xbf\xbd", 1);
	check_text("\\u12",
		   "\xef\xbf\xbd"
		   "12",
		   1);
	check_text("\\q", "\xef\xbf\xbd", 1);
	check_text("\\u0000", "\xef\xbf\xbd", 1);
	check_text("a\x01"
		   "b",
		   "a\xef\xbf\xbd"
		   "b",
		   1);
	check_text("a\tb", "a\tb", 0);
	check_text("\xff", "\xef\xbf\xbd", 1);
	check_text("\xc3", "\xef\xbf\xbd", 1);
	check_text("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3);
	check_text("end\\", "end\xef\xbf\xbd", 1);
}

/* ---- values in a stream ---- */

/* A file with this text, and a scanner at its start. */
struct file {
	char path[64];
	struct lull_stream *stream;
	struct lull_jscan scan;
};

static void open_file(struct file *f, const char *text, size_t len)
{
	struct lull_err err;
	int fd;

	strcpy(f->path, "/tmp/lull-jscan-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	assert_int_equal(lull_stream_open(&f->stream, f->path, &err), 0);
	assert_int_equal(lull_jscan_init(&f->scan, f->stream, &err), 0);
}

static void close_file(struct file *f)
{
	lull_jscan_release(&f->scan);
	lull_stream_close(f->stream);
	unlink(f->path);
}

static void values_are_skipped_whatever_their_depth_and_length(void **state)
{
	enum { DEPTH = 3000000, LEN = (40 << 20) + 100 };
	struct lull_err err;
	struct file f;
	char *text;

	(void)state;
	text = lull_alloc(2 * (size_t)DEPTH + 2, 1);
	memset(text, '[', DEPTH);
	memset(text + DEPTH, ']', DEPTH);
	text[2 * DEPTH] = '7';
	open_file(&f, text, 2 * (size_t)DEPTH + 1);
	assert_int_equal(lull_jscan_skip(&f.scan, &err), 0);
	assert_int_equal(*f.scan.p, '7');
	close_file(&f);
	free(text);

	text = lull_alloc(LEN + 4, 1);
	memset(text, '\\', LEN);
	text[0] = '"';
	strcpy(text + LEN - 1, "\"7");
	open_file(&f, text, LEN + 1);
	assert_int_equal(lull_jscan_skip(&f.scan, &err), 0);
	assert_int_equal(*f.scan.p, '7');
	assert_int_equal(lull_jscan_off(&f.scan), LEN);
	close_file(&f);
	free(text);
}

static void a_value_cut_by_the_text_asks_for_more_and_gets_none(void **state)
{
	static const char whole[] = "{\"a\": [1, {\"b\": \"x\\\"]\"}], \"c\": -1.5} ";
	struct lull_jtext value;
	struct lull_err err;
	struct file f;
	char first;

	(void)state;
	for (size_t len = 0; len < sizeof(whole) - 2; len++) {
		open_file(&f, whole, len);
		assert_true(lull_jscan_value(&f.scan, &value, &first) != LULL_JSCAN_OK);
		assert_int_equal(lull_jscan_refill(&f.scan, f.scan.p, &err), LULL_E_NOT_FOUND);
		close_file(&f);
	}
	open_file(&f, whole, sizeof(whole) - 1);
	assert_int_equal(lull_jscan_value(&f.scan, &value, &first), LULL_JSCAN_OK);
	assert_int_equal(value.len, sizeof(whole) - 2);
	assert_int_equal(first, '{');
	close_file(&f);
}

static void pairs_of_an_object_come_one_by_one(void **state)
{
	struct lull_jtext text = text_of("{ \"a\" : 1, \"b\":\"x\" ,\"c\":[] }"), key, value;
	struct lull_jscan j;
	char first;

	(void)state;
	lull_jscan_init_text(&j, &text);
	j.p++;
	assert_int_equal(lull_jscan_pair(&j, &key), LULL_JSCAN_OK);
	assert_true(lull_jtext_is(&key, "a"));
	assert_int_equal(lull_jscan_value(&j, &value, &first), LULL_JSCAN_OK);
	assert_true(lull_jtext_is(&value, "1"));
	assert_int_equal(lull_jscan_pair(&j, &key), LULL_JSCAN_OK);
	assert_int_equal(lull_jscan_value(&j, &value, &first), LULL_JSCAN_OK);
	assert_true(lull_jtext_is(&value, "x"));
	assert_int_equal(first, '"');
	assert_int_equal(lull_jscan_pair(&j, &key), LULL_JSCAN_OK);
	assert_int_equal(lull_jscan_value(&j, &value, &first), LULL_JSCAN_OK);
	assert_int_equal(lull_jscan_pair(&j, &key), LULL_JSCAN_END);
	lull_jscan_release(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_find_what_plain_ones_find),
		cmocka_unit_test(microseconds_become_nanoseconds_to_the_last_digit),
		cmocka_unit_test(what_is_no_number_is_absent),
		cmocka_unit_test(whole_numbers_keep_all_digits),
		cmocka_unit_test(escapes_are_resolved_and_nonsense_is_repaired),
		cmocka_unit_test(values_are_skipped_whatever_their_depth_and_length),
		cmocka_unit_test(a_value_cut_by_the_text_asks_for_more_and_gets_none),
		cmocka_unit_test(pairs_of_an_object_come_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
