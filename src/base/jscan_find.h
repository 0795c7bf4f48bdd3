/*
 * jscan_find - the loops that JSON spends its bytes in, as wide as the CPU allows.
 *
 * Inline, for base/jscan and those who read events by the million (src/import/jevent.c). Up to 16 bytes behind the end
 * are read, which the window of a lull_jscan has; never used on other memory. LULL_PORTABLE chooses
 * the plain form, so that tests can run both.
 */
#ifndef LULL_BASE_JSCAN_FIND_H
#define LULL_BASE_JSCAN_FIND_H

#include <string.h>

#include "base/jscan.h"
#include "base/types.h"

#if !defined(LULL_PORTABLE) && defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#elif !defined(LULL_PORTABLE) && defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The first '"' or '\\' from `p` on; `end` or a place behind it if there is none before `end`. */
static inline const char *lull_jscan_quote(const char *p, const char *end)
{
#if !defined(LULL_PORTABLE) && defined(__ARM_NEON) && defined(__aarch64__)
	const uint8x16_t quote = vdupq_n_u8('"'), slash = vdupq_n_u8('\\');

	for (; p < end; p += 16) {
		uint8x16_t v = vld1q_u8((const u8 *)p);
		uint8x16_t hit = vorrq_u8(vceqq_u8(v, quote), vceqq_u8(v, slash));
		/* Four bits for each byte: NEON has no movemask. */
		u64 mask = vget_lane_u64(
			vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);

		if (mask)
			return p + (__builtin_ctzll(mask) >> 2);
	}
#elif !defined(LULL_PORTABLE) && defined(__SSE2__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');

	for (; p < end; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned mask = (unsigned)_mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));

		if (mask)
			return p + __builtin_ctz(mask);
	}
#else
	while (p < end && *p != '"' && *p != '\\')
		p++;
#endif
	return p;
}

/* The first character that is no blank; a NUL ends the search, too. */
static inline const char *lull_jscan_blanks(const char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
		p++;
	return p;
}

/* lull_jscan_string(), inline. */
static inline enum lull_jscan_result lull_jscan_take_string(struct lull_jscan *j,
							    struct lull_jtext *text)
{
	const char *p = j->p + 1;

	text->at = p;
	text->has_escapes = false;
	for (;;) {
		p = lull_jscan_quote(p, j->end);
		if (p >= j->end)
			return LULL_JSCAN_MORE;
		if (*p == '"')
			break;
		text->has_escapes = true;
		p += 2;
	}
	text->len = (size_t)(p - text->at);
	j->p = p + 1;
	return LULL_JSCAN_OK;
}

/* lull_jscan_pair(), inline. */
static inline enum lull_jscan_result lull_jscan_take_pair(struct lull_jscan *j,
							  struct lull_jtext *key)
{
	enum lull_jscan_result got;

	j->p = lull_jscan_blanks(j->p);
	if (*j->p == ',')
		j->p = lull_jscan_blanks(j->p + 1);
	if (*j->p == '}') {
		j->p++;
		return LULL_JSCAN_END;
	}
	if (*j->p != '"')
		return j->p == j->end ? LULL_JSCAN_MORE : LULL_JSCAN_BAD;
	got = lull_jscan_take_string(j, key);
	if (got)
		return got;
	j->p = lull_jscan_blanks(j->p);
	if (*j->p != ':')
		return j->p == j->end ? LULL_JSCAN_MORE : LULL_JSCAN_BAD;
	j->p = lull_jscan_blanks(j->p + 1);
	return LULL_JSCAN_OK;
}

/* Whether a number or word goes on with this character. */
static inline bool lull_jscan_is_word(char c)
{
	return c > ' ' && c != ',' && c != ']' && c != '}' && c != ':' && c != '"' && c != '[' &&
	       c != '{';
}

/* The end of the object or array at `p`, or NULL if it is not in the window. */
static inline const char *lull_jscan_close(const char *p, const char *end)
{
	u64 depth = 0;

	while (p < end) {
		char c = *p++;

		if (c == '"') {
			while ((p = lull_jscan_quote(p, end)) < end && *p == '\\')
				p += 2;
			p++;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == '}' || c == ']') && --depth == 0) {
			return p <= end ? p : NULL;
		}
	}
	return NULL;
}

/* lull_jscan_value(), inline. */
static inline enum lull_jscan_result
lull_jscan_take_value(struct lull_jscan *j, struct lull_jtext *text, char *first)
{
	const char *p = j->p = lull_jscan_blanks(j->p);

	*first = *p;
	if (*p == '"')
		return lull_jscan_take_string(j, text);
	text->at = p;
	text->has_escapes = false;
	if (*p == '{' || *p == '[') {
		p = lull_jscan_close(p, j->end);
		if (!p)
			return LULL_JSCAN_MORE;
	} else {
		while (lull_jscan_is_word(*p))
			p++;
		if (p == j->end)
			return LULL_JSCAN_MORE;
		if (p == j->p)
			return LULL_JSCAN_BAD;
	}
	text->len = (size_t)(p - text->at);
	j->p = p;
	return LULL_JSCAN_OK;
}

#endif
