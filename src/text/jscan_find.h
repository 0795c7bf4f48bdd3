/*
 * jscan_find - the loops that JSON spends its bytes in, as wide as the CPU allows.
 *
 * Inline, for text/jscan and those who read events by the million (src/import/jevent.c). Up to 32
 * bytes after the end are read, which the window of a lull_jscan has; never used on other memory.
 * LULL_PORTABLE chooses the plain form, so that tests can run both.
 *
 * A mask has LULL_JSCAN_STEP bits for each of 16 bytes, of which the highest is set where the byte
 * is one of those looked for: NEON has no movemask, but it can narrow a byte to four bits.
 */
#ifndef LULL_TEXT_JSCAN_FIND_H
#define LULL_TEXT_JSCAN_FIND_H

#include <string.h>

#include "text/jscan.h"
#include "base/types.h"

#if !defined(LULL_PORTABLE) && defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define LULL_JSCAN_WIDE 1
#define LULL_JSCAN_STEP 4

static inline u64 lull_jscan_mask(uint8x16_t hit)
{
	uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(hit), 4);

	return vget_lane_u64(vreinterpret_u64_u8(narrow), 0) & 0x8888888888888888ULL;
}

/* '"' and '\\'. */
static inline u64 lull_jscan_mask_quote(const char *p)
{
	uint8x16_t v = vld1q_u8((const u8 *)p);

	return lull_jscan_mask(
		vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\'))));
}

/* '"', '\\', and brackets of both kinds, which differ in one bit. */
static inline u64 lull_jscan_mask_structure(const char *p)
{
	uint8x16_t v = vld1q_u8((const u8 *)p), b = vorrq_u8(v, vdupq_n_u8(0x20));
	uint8x16_t quote = vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));

	return lull_jscan_mask(vorrq_u8(
		quote, vorrq_u8(vceqq_u8(b, vdupq_n_u8('{')), vceqq_u8(b, vdupq_n_u8('}')))));
}

/* What is no blank. */
static inline u64 lull_jscan_mask_text(const char *p)
{
	uint8x16_t v = vld1q_u8((const u8 *)p);

	/* NUL ends the text and is no blank: 0 - 1 wraps. */
	return lull_jscan_mask(vcgeq_u8(vsubq_u8(v, vdupq_n_u8(1)), vdupq_n_u8(' ')));
}

#elif !defined(LULL_PORTABLE) && defined(__SSE2__)
#include <emmintrin.h>
#define LULL_JSCAN_WIDE 1
#define LULL_JSCAN_STEP 1

static inline __m128i lull_jscan_is(__m128i v, char c)
{
	return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

static inline __m128i lull_jscan_load(const char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* '"' and '\\'. */
static inline u64 lull_jscan_mask_quote(const char *p)
{
	__m128i v = lull_jscan_load(p);

	return (unsigned)_mm_movemask_epi8(
		_mm_or_si128(lull_jscan_is(v, '"'), lull_jscan_is(v, '\\')));
}

/* '"', '\\', and brackets of both kinds, which differ in one bit. */
static inline u64 lull_jscan_mask_structure(const char *p)
{
	__m128i v = lull_jscan_load(p), b = _mm_or_si128(v, _mm_set1_epi8(0x20));
	__m128i quote = _mm_or_si128(lull_jscan_is(v, '"'), lull_jscan_is(v, '\\'));
	__m128i bracket = _mm_or_si128(lull_jscan_is(b, '{'), lull_jscan_is(b, '}'));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(quote, bracket));
}

/* What is no blank. */
static inline u64 lull_jscan_mask_text(const char *p)
{
	/* NUL ends the text and is no blank: 0 - 1 wraps. */
	__m128i v = _mm_sub_epi8(lull_jscan_load(p), _mm_set1_epi8(1));
	__m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(' ' - 1)), v);

	return (unsigned)_mm_movemask_epi8(blank) ^ 0xffffu;
}

#else
#define LULL_JSCAN_WIDE 0
#endif

#if LULL_JSCAN_WIDE
/* The byte that the lowest bit of a mask stands for. */
static inline size_t lull_jscan_lowest(u64 mask)
{
	return (size_t)__builtin_ctzll(mask) / LULL_JSCAN_STEP;
}
#endif

/* The first '"' or '\\' from `p` on; `end` or a place after it if there is none before `end`. */
static inline const char *lull_jscan_quote(const char *p, const char *end)
{
#if LULL_JSCAN_WIDE
	for (; p < end; p += 16) {
		u64 mask = lull_jscan_mask_quote(p);

		if (mask)
			return p + lull_jscan_lowest(mask);
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
#if LULL_JSCAN_WIDE
	u64 mask;

	if ((u8)*p > ' ')
		return p;
	if ((u8)p[1] > ' ' && *p)
		return p + 1;
	while (!(mask = lull_jscan_mask_text(p)))
		p += 16;
	return p + lull_jscan_lowest(mask);
#else
	/* NUL ends the text and is no blank: 0 - 1 wraps. */
	while ((u8)(*p - 1) < ' ')
		p++;
	return p;
#endif
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

/*
 * The end of the number or word at `p`. Byte by byte: they are short, and the CPU guesses where
 * they end, but waits for a wide compare.
 */
static inline const char *lull_jscan_word_end(const char *p)
{
	while ((u8)*p > '"' && *p != ',' && *p != ':' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
		p++;
	return p;
}

/*
 * The end of the object or array around `p`, `depth` levels up, or NULL if it is not in the window.
 */
static inline const char *lull_jscan_close_slow(const char *p, const char *end, u64 depth,
						bool is_string)
{
	for (; p < end; p++) {
		if (*p == '"')
			is_string = !is_string;
		else if (*p == '\\' && is_string)
			p++;
		else if (!is_string && (*p | 0x20) == '{')
			depth++;
		else if (!is_string && (*p | 0x20) == '}' && --depth == 0)
			return p + 1;
	}
	return NULL;
}

/* The end of the object or array at `p`, or NULL if it is not in the window. */
static inline const char *lull_jscan_close(const char *p, const char *end)
{
#if LULL_JSCAN_WIDE
	bool is_string = false;
	u64 depth = 0;

	for (; p < end; p += 16) {
		for (u64 mask = lull_jscan_mask_structure(p); mask; mask &= mask - 1) {
			const char *at = p + lull_jscan_lowest(mask);

			if (*at == '"') {
				is_string = !is_string;
			} else if (*at == '\\') {
				if (is_string)
					return lull_jscan_close_slow(at, end, depth, true);
			} else if (is_string) {
				continue;
			} else if (*at & 2) { /* '{' and '[' */
				depth++;
			} else if (--depth == 0) {
				return at < end ? at + 1 : NULL;
			}
		}
	}
	return NULL;
#else
	return lull_jscan_close_slow(p, end, 0, false);
#endif
}

/* lull_jscan_value(), inline. */
static inline enum lull_jscan_result lull_jscan_take_value(struct lull_jscan *j,
							   struct lull_jtext *text, char *first)
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
		p = lull_jscan_word_end(p);
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
