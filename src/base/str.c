#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void lull_str_release(struct lull_str *s)
{
	free(s->at);
	*s = (struct lull_str)LULL_STR_INIT;
}

void lull_str_clear(struct lull_str *s)
{
	s->len = 0;
	if (s->at)
		s->at[0] = '\0';
}

static void reserve(struct lull_str *s, size_t extra)
{
	size_t need = s->len + extra + 1;
	size_t cap = s->cap ? s->cap : 64;

	if (need <= s->cap)
		return;
	while (cap < need)
		cap *= 2;
	s->at = lull_realloc(s->at, cap, 1);
	s->cap = cap;
}

void lull_str_add(struct lull_str *s, const char *text, size_t len)
{
	reserve(s, len);
	if (len)
		memcpy(s->at + s->len, text, len);
	s->len += len;
	s->at[s->len] = '\0';
}

void lull_str_puts(struct lull_str *s, const char *text)
{
	lull_str_add(s, text, strlen(text));
}

/* The digits of `value`, at least `min_digits`, written backwards from `end`; where they begin. */
static char *put_digits(char *end, u64 value, int min_digits)
{
	while (value || min_digits > 0) {
		*--end = (char)('0' + value % 10);
		value /= 10;
		min_digits--;
	}
	return end;
}

/* How many digits a number has; at least one. */
static int count_digits(u64 value)
{
	int n = 1;

	for (; value >= 10000; value /= 10000)
		n += 4;
	return n + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* 00 to 99: two digits at a time are half the divisions. */
#define TEN(d) d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9"
static const char pairs[] =
	TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9");

static inline void put_pair(char *at, unsigned below_100)
{
	memcpy(at, pairs + 2 * (size_t)below_100, 2);
}

char *lull_str_put_i64(char *at, i64 value)
{
	u64 rest = value < 0 ? 0 - (u64)value : (u64)value;
	char *end = at + count_digits(rest) + (value < 0), *from = end;

	*at = '-';
	while (rest >= 10000) {
		unsigned four = (unsigned)(rest % 10000);

		rest /= 10000;
		from -= 4;
		put_pair(from, four / 100);
		put_pair(from + 2, four % 100);
	}
	if (rest >= 100) {
		from -= 2;
		put_pair(from, (unsigned)rest % 100);
		rest /= 100;
	}
	if (rest >= 10)
		put_pair(from - 2, (unsigned)rest);
	else
		*--from = (char)('0' + rest);
	return end;
}

char *lull_str_room(struct lull_str *s, size_t len)
{
	reserve(s, len);
	return s->at + s->len;
}

void lull_str_take(struct lull_str *s, const char *end)
{
	s->len = (size_t)(end - s->at);
	s->at[s->len] = '\0';
}

/* The digits of a 64-bit number and its sign. */
#define MAX_DIGITS 20

void lull_str_add_i64(struct lull_str *s, i64 value)
{
	lull_str_take(s, lull_str_put_i64(lull_str_room(s, MAX_DIGITS), value));
}

/*
 * |value| * scale rounded to a whole number, ties to even, as printf() rounds: the value is
 * fraction * 2^exponent with a fraction of 53 bits, so the product and what is shifted out of it
 * are exact in 64 bits. False if it is too large for that.
 */
static bool scale_exactly(f64 value, u64 scale, u64 *whole)
{
	int exponent;
	u64 product = (u64)ldexp(frexp(fabs(value), &exponent), 53) * scale, rest, half;
	int shift = 53 - exponent;

	if (shift <= 0)
		return false;
	if (shift > 63) {
		*whole = 0;
		/* The product is below 2^63. */
		return shift > 64 || product <= 1ULL << 63;
	}
	*whole = product >> shift;
	rest = product & ((1ULL << shift) - 1);
	half = 1ULL << (shift - 1);
	*whole += rest > half || (rest == half && *whole & 1);
	return true;
}

void lull_str_add_fixed(struct lull_str *s, f64 value, int decimals)
{
	static const u64 scales[] = { 1, 10, 100, 1000 };
	char text[32], *end = text + sizeof(text), *at = end;
	u64 whole;

	if (decimals < 0 || decimals > 3 || !isfinite(value) ||
	    !scale_exactly(value, scales[decimals], &whole)) {
		lull_str_addf(s, "%.*f", decimals, value);
		return;
	}
	if (decimals) {
		at = put_digits(at, whole % scales[decimals], decimals);
		*--at = '.';
	}
	at = put_digits(at, whole / scales[decimals], 1);
	if (signbit(value) && whole) /* what rounds to zero has no sign */
		*--at = '-';
	lull_str_add(s, at, (size_t)(end - at));
}

void lull_str_vaddf(struct lull_str *s, const char *fmt, va_list ap)
{
	va_list again;
	size_t room;
	int n;

	/* Most texts are short: one look at the format is enough for them. */
	reserve(s, 64);
	room = s->cap - s->len;
	va_copy(again, ap);
	n = vsnprintf(s->at + s->len, room, fmt, again);
	va_end(again);
	if (n >= 0 && (size_t)n >= room) {
		reserve(s, (size_t)n);
		vsnprintf(s->at + s->len, (size_t)n + 1, fmt, ap);
	}
	s->len += n > 0 ? (size_t)n : 0;
	s->at[s->len] = '\0';
}

void lull_str_addf(struct lull_str *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(s, fmt, ap);
	va_end(ap);
}

const char *lull_str_text(const struct lull_str *s)
{
	return s->at ? s->at : "";
}
