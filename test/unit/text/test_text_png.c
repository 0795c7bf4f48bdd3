#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "text/text_png.h"

/* Width and height of the picture of a text. */
static void expect_size(const char *text, size_t len, u32 columns, u32 lines)
{
	char *png = NULL;
	size_t size;
	FILE *to = lull_memstream(&png, &size);
	u32 width, height;

	lull_text_png(to, text, len);
	fclose(to);
	assert_true(size > 60 && !memcmp(png, "\x89PNG\r\n\x1a\n", 8));
	assert_true(!memcmp(png + size - 8, "IEND", 4));
	width = (u32)(u8)png[18] << 8 | (u8)png[19];
	height = (u32)(u8)png[22] << 8 | (u8)png[23];
	assert_int_equal(width, 16 + columns * 12);
	assert_int_equal(height, 16 + lines * 20);
	free(png);
}

static void a_picture_is_as_large_as_its_text(void **state)
{
	(void)state;
	expect_size("", 0, 1, 1);
	expect_size("a", 1, 1, 1);
	expect_size("ab\ncde\n", 7, 3, 2);
	expect_size("\033[32m\xe2\x96\x84\xe2\x96\x88\033[0m\n", 16, 2, 1);
}

/* What is no text, or an escape that is cut, is drawn as something, and does no harm. */
static void odd_bytes_do_no_harm(void **state)
{
	static const char bytes[] = "\033[3\xff\xe2\x96\t\xc3\xa4\0\x7f\033";
	char *png = NULL;
	size_t size;
	FILE *to = lull_memstream(&png, &size);

	(void)state;
	for (size_t i = 0; i <= sizeof(bytes); i++)
		lull_text_png(to, bytes, i < sizeof(bytes) ? i : sizeof(bytes));
	fclose(to);
	free(png);
}

static void what_is_too_large_is_cut(void **state)
{
	struct lull_str text = LULL_STR_INIT;

	(void)state;
	for (u32 i = 0; i < LULL_TEXT_PNG_COLUMNS + 9; i++)
		lull_str_puts(&text, "x");
	expect_size(text.at, text.len, LULL_TEXT_PNG_COLUMNS, 1);
	lull_str_clear(&text);
	for (u32 i = 0; i < LULL_TEXT_PNG_LINES + 9; i++)
		lull_str_puts(&text, "x\n");
	expect_size(text.at, text.len, 1, LULL_TEXT_PNG_LINES);
	lull_str_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_picture_is_as_large_as_its_text),
		cmocka_unit_test(odd_bytes_do_no_harm),
		cmocka_unit_test(what_is_too_large_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
