/*
 * jscan_cases - the loops of text/jscan_find.h against plain ones, at every offset and length.
 *
 * Included by two tests: one with what the CPU can, one with LULL_PORTABLE.
 */
#ifndef LULL_TEST_UNIT_JSCAN_CASES_H
#define LULL_TEST_UNIT_JSCAN_CASES_H

#include "unit/unit.h"

#include "text/jscan_find.h"

#define CASE_BYTES   96
#define CASE_PADDING 64

/* Texts of characters that matter to JSON, and some that look like them. */
static void fill_case(char *text, size_t len, u64 *state)
{
	static const char letters[] = "ab\"\\[]{}, :\n\t.09-|;\x7f\x01\xdb\xfb";

	memset(text, 0, CASE_BYTES + CASE_PADDING);
	for (size_t i = 0; i < len; i++) {
		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		text[i] = letters[(*state >> 33) % (sizeof(letters) - 1)];
	}
}

static const char *plain_quote(const char *p, const char *end)
{
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

static const char *plain_blanks(const char *p)
{
	while (*p && (u8)*p <= ' ')
		p++;
	return p;
}

/* The end of the object or array at `p`, character by character. */
static const char *plain_close(const char *p, const char *end)
{
	bool is_string = false;
	u64 depth = 0;

	for (; p < end; p++) {
		if (is_string && *p == '\\')
			p++;
		else if (*p == '"')
			is_string = !is_string;
		else if (!is_string && (*p == '[' || *p == '{'))
			depth++;
		else if (!is_string && (*p == ']' || *p == '}') && --depth == 0)
			return p + 1;
	}
	return NULL;
}

static void loops_find_what_plain_ones_find(void **unused)
{
	char text[CASE_BYTES + CASE_PADDING];
	u64 state = 1;

	(void)unused;
	for (int round = 0; round < 20000; round++) {
		size_t len = (size_t)round % CASE_BYTES, from = len ? (size_t)round % 17 % len : 0;
		const char *end = text + len, *found;

		fill_case(text, len, &state);
		found = lull_jscan_quote(text + from, end);
		assert_ptr_equal(found < end ? found : end, plain_quote(text + from, end));
		assert_ptr_equal(lull_jscan_blanks(text + from), plain_blanks(text + from));
		if (len < 2)
			continue;
		text[from] = '[';
		assert_ptr_equal(lull_jscan_close(text + from, end), plain_close(text + from, end));
	}
}

#endif
