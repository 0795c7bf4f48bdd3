#include "text/jscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/jscan_find.h"
#include "base/mem.h"
#include "base/rune.h"

#define WINDOW_BYTES  (1u << 20)
#define PADDING_BYTES 64u /* what the widest load may read after the end */

/* ---- the window ---- */

static void set_window(struct lull_jscan *j, size_t len)
{
	j->p = j->window;
	j->end = j->window + len;
	memset(j->window + len, 0, PADDING_BYTES);
}

/* Fill the window after its first `len` bytes. */
static int fill(struct lull_jscan *j, size_t len, struct lull_err *err)
{
	i64 n = lull_stream_read(j->stream, j->window + len, j->cap - len, err);

	if (n < 0)
		return (int)n;
	j->is_end = (size_t)n < j->cap - len;
	set_window(j, len + (size_t)n);
	return 0;
}

int lull_jscan_init(struct lull_jscan *j, struct lull_stream *stream, struct lull_err *err)
{
	*j = (struct lull_jscan){ .stream = stream, .cap = WINDOW_BYTES };
	j->window = lull_alloc(j->cap + PADDING_BYTES, 1);
	return fill(j, 0, err);
}

void lull_jscan_init_text(struct lull_jscan *j, const struct lull_jtext *text)
{
	*j = (struct lull_jscan){ .cap = text->len, .is_end = true };
	j->window = lull_alloc(j->cap + PADDING_BYTES, 1);
	memcpy(j->window, text->at, text->len);
	set_window(j, text->len);
}

void lull_jscan_release(struct lull_jscan *j)
{
	free(j->window);
	*j = (struct lull_jscan){ 0 };
}

int lull_jscan_restart(struct lull_jscan *j, struct lull_err *err)
{
	j->window_off = 0;
	return fill(j, 0, err);
}

int lull_jscan_refill(struct lull_jscan *j, const char *keep, struct lull_err *err)
{
	size_t len = (size_t)(j->end - keep);

	j->p = keep;
	if (j->is_end || len >= LULL_JSCAN_MAX_BYTES)
		return LULL_E_NOT_FOUND;
	j->window_off += (u64)(keep - j->window);
	memmove(j->window, keep, len);
	if (len > j->cap / 2) {
		j->cap *= 2;
		j->window = lull_realloc(j->window, j->cap + PADDING_BYTES, 1);
	}
	return fill(j, len, err);
}

u64 lull_jscan_off(const struct lull_jscan *j)
{
	return j->window_off + (u64)(j->p - j->window);
}

/* ---- characters ---- */

char lull_jscan_peek(struct lull_jscan *j)
{
	j->p = lull_jscan_blanks(j->p);
	return *j->p;
}

enum lull_jscan_result lull_jscan_string(struct lull_jscan *j, struct lull_jtext *text)
{
	return lull_jscan_take_string(j, text);
}

enum lull_jscan_result lull_jscan_pair(struct lull_jscan *j, struct lull_jtext *key)
{
	return lull_jscan_take_pair(j, key);
}

enum lull_jscan_result lull_jscan_value(struct lull_jscan *j, struct lull_jtext *text, char *first)
{
	return lull_jscan_take_value(j, text, first);
}

/* ---- skipping what is larger than the window ---- */

struct skip {
	u64 depth;
	bool is_string;
	bool is_escaped; /* the window ended between a backslash and its character */
};

/* Go on until the value ends, true, or the window does. */
static bool skip_some(struct lull_jscan *j, struct skip *s)
{
	const char *p = j->p;

	for (; p < j->end; p++) {
		char c = *p;

		if (s->is_escaped) {
			s->is_escaped = false;
		} else if (s->is_string) {
			p = lull_jscan_quote(p, j->end);
			if (p >= j->end)
				break;
			s->is_escaped = *p == '\\';
			s->is_string = s->is_escaped;
		} else if (c == '"') {
			s->is_string = true;
		} else if (c == '{' || c == '[') {
			s->depth++;
		} else if (s->depth && (c == '}' || c == ']')) {
			s->depth--;
		} else {
			continue;
		}
		if (!s->depth && !s->is_string) {
			j->p = p + 1;
			return true;
		}
	}
	j->p = j->end;
	return false;
}

int lull_jscan_skip(struct lull_jscan *j, struct lull_err *err)
{
	struct skip s = { 0 };
	struct lull_jtext text;
	int rc;
	char first;

	while (!lull_jscan_peek(j) && j->p == j->end) {
		rc = lull_jscan_refill(j, j->p, err);
		if (rc)
			return rc;
	}
	if (*j->p != '"' && *j->p != '{' && *j->p != '[') {
		const char *begin = j->p;

		while ((rc = (int)lull_jscan_value(j, &text, &first)) == LULL_JSCAN_MORE) {
			rc = lull_jscan_refill(j, begin, err);
			if (rc)
				return rc;
			begin = j->p;
		}
		return rc == LULL_JSCAN_OK ? 0 : LULL_E_NOT_FOUND;
	}
	while (!skip_some(j, &s)) {
		rc = lull_jscan_refill(j, j->end, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- numbers ---- */

bool lull_jtext_f64(const struct lull_jtext *text, f64 *value)
{
	char copy[64], *end;
	size_t len = text->len < sizeof(copy) - 1 ? text->len : sizeof(copy) - 1;
	char c = text->len ? text->at[0] : 0;

	if (!(c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')))
		return false;
	memcpy(copy, text->at, len);
	copy[len] = 0;
	*value = strtod(copy, &end);
	return end != copy && isfinite(*value);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Add the digits from *p on to `v`, eight at a time. The first step finds out whether all eight
 * bytes are digits, the next three add neighbours: ones and tens, then pairs, then fours.
 */
static u64 digits(const char **p, const char *end, u64 v)
{
	while (end - *p >= 8) {
		u64 w;

		memcpy(&w, *p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		w = __builtin_bswap64(w);
#endif
		if (((w & 0xf0f0f0f0f0f0f0f0) |
		     ((w + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) != 0x3333333333333333)
			break;
		w = (w & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
		w = (w & 0x00ff00ff00ff00ff) * 6553601 >> 16;
		w = (w & 0x0000ffff0000ffff) * 42949672960001 >> 32;
		v = v * 100000000 + w;
		*p += 8;
	}
	for (; *p < end && is_digit(**p); (*p)++)
		v = v * 10 + (u64)(**p - '0');
	return v;
}

bool lull_jtext_i64(const struct lull_jtext *text, i64 *value)
{
	const char *p = text->at, *end = p + text->len;
	bool is_negative = p < end && *p == '-';
	f64 large;
	u64 v;

	p += is_negative;
	if (p >= end || !is_digit(*p))
		return false;
	v = digits(&p, end, 0);
	if (p < end && (*p == 'e' || *p == 'E' || *p == '.')) {
		if (!lull_jtext_f64(text, &large) || fabs(large) > 9e18)
			return false;
		v = (u64)fabs(large);
	}
	*value = is_negative ? (i64)(0 - v) : (i64)v;
	return true;
}

/*
 * Ones with an exponent are rare; they are read as doubles, whose error is below 1 ns up to 2^53.
 */
static bool milli_of_f64(const struct lull_jtext *text, i64 *value)
{
	f64 v;

	if (!lull_jtext_f64(text, &v) || fabs(v) > 9e15)
		return false;
	*value = (i64)llround(v * 1000);
	return true;
}

bool lull_jtext_milli(const struct lull_jtext *text, i64 *value)
{
	enum { MAX_DIGITS = 16 }; /* 10^15 us are 31 years: times since 1970 have 16 digits */
	const char *p = text->at, *end = p + text->len, *begin;
	bool is_negative = p < end && *p == '-';
	unsigned n_decimals = 0;
	u64 v;

	p += is_negative;
	begin = p;
	v = digits(&p, end, 0);
	if (p == begin || p - begin > MAX_DIGITS)
		return false;
	if (p < end && *p == '.')
		for (p++; p < end && is_digit(*p) && n_decimals < 3; p++, n_decimals++)
			v = v * 10 + (u64)(*p - '0');
	for (; n_decimals < 3; n_decimals++)
		v *= 10;
	if (p < end && is_digit(*p) && *p >= '5')
		v++;
	while (p < end && is_digit(*p))
		p++;
	if (p < end)
		return milli_of_f64(text, value);
	*value = is_negative ? -(i64)v : (i64)v;
	return true;
}

/* ---- texts ---- */

bool lull_jtext_is(const struct lull_jtext *text, const char *word)
{
	return text->len == strlen(word) && !memcmp(text->at, word, text->len);
}

static void add_rune(struct lull_str *to, u32 rune)
{
	char bytes[4];

	lull_str_add(to, bytes, lull_rune_put(bytes, rune));
}

#define REPLACEMENT 0xfffdu

/* The four hex digits at `p`; -1 if they are not there. */
static i32 hex4(const char *p, const char *end)
{
	i32 v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		i32 d = is_digit(c)	       ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* The rune of \uXXXX, whose digits are at *p; a pair of surrogates is one. */
static u32 unicode(const char **p, const char *end)
{
	i32 high = hex4(*p, end), low;

	if (high < 0)
		return REPLACEMENT;
	*p += 4;
	if (high < 0xd800 || high > 0xdfff)
		return high ? (u32)high : REPLACEMENT;
	if (high > 0xdbff || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return REPLACEMENT;
	low = hex4(*p + 2, end);
	if (low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	*p += 6;
	return 0x10000u + ((u32)(high - 0xd800) << 10) + (u32)(low - 0xdc00);
}

/* The rune of the escape whose letter is at *p. */
static u32 escape(const char **p, const char *end)
{
	static const char letters[] = "\"\\/bfnrt", runes[] = "\"\\/\b\f\n\r\t";
	char c = *(*p)++;
	const char *found;

	if (c == 'u')
		return unicode(p, end);
	found = c ? strchr(letters, c) : NULL;
	return found ? (u32)(u8)runes[found - letters] : REPLACEMENT;
}

/* Bytes of the UTF-8 character at `p`, 0 if there is none. */
static size_t utf8_len(const char *p, const char *end)
{
	const u8 *b = (const u8 *)p;
	size_t left = (size_t)(end - p), n;
	u32 rune;

	n = b[0] < 0x80			  ? 1
	    : b[0] >= 0xc2 && b[0] < 0xe0 ? 2
	    : b[0] >= 0xe0 && b[0] < 0xf0 ? 3
	    : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
					  : 0;
	if (!n || n > left)
		return 0;
	rune = n == 1 ? b[0] : b[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | (b[i] & 0x3fu);
	}
	if ((n == 3 && (rune < 0x800 || (rune >= 0xd800 && rune <= 0xdfff))) ||
	    (n == 4 && (rune < 0x10000 || rune > 0x10ffff)))
		return 0;
	return n;
}

size_t lull_jtext_add(struct lull_str *to, const struct lull_jtext *text)
{
	const char *p = text->at, *end = p + text->len;
	size_t n_repaired = 0;

	while (p < end) {
		const char *plain = p;

		/* Control characters are no JSON; tabs and line ends are harmless all the same. */
		while (p < end && *p != '\\' && (u8)*p >= 0x20 && (u8)*p < 0x80)
			p++;
		lull_str_add(to, plain, (size_t)(p - plain));
		if (p == end)
			break;
		if (*p == '\\' && p + 1 < end) {
			u32 rune = (p++, escape(&p, end));

			n_repaired += rune == REPLACEMENT;
			add_rune(to, rune);
		} else if (*p == '\t' || *p == '\n' || *p == '\r' || (u8)*p >= 0x80) {
			size_t n = utf8_len(p, end);

			n_repaired += !n;
			if (n)
				lull_str_add(to, p, n);
			else
				add_rune(to, REPLACEMENT);
			p += n ? n : 1;
		} else {
			n_repaired++;
			add_rune(to, REPLACEMENT);
			p++;
		}
	}
	return n_repaired;
}
