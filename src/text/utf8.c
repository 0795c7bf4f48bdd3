#include "text/utf8.h"

/*
 * Table 3-7 of the Unicode standard: the second byte's range depends on the first, which rules out
 * overlong forms, surrogates and what lies beyond U+10FFFF.
 */
size_t lull_utf8_len(const u8 *s, size_t left)
{
	u8 lo = 0x80, hi = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n > left)
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

size_t lull_utf8_valid(const char *text, size_t len)
{
	size_t at = 0, n;

	while (at < len && (n = lull_utf8_len((const u8 *)text + at, len - at)) > 0)
		at += n;
	return at;
}

void lull_utf8_add(struct lull_str *to, const char *text, size_t len)
{
	while (len) {
		size_t n = lull_utf8_valid(text, len);

		lull_str_add(to, text, n);
		if (n == len)
			return;
		lull_str_puts(to, LULL_UTF8_BAD);
		text += n + 1;
		len -= n + 1;
	}
}
