/*
 * varint - numbers in as few bytes as they need: seven bits each, the lowest first, the eighth bit
 * says that another follows. Protocol buffers and our own packed files have them.
 */
#ifndef LULL_BASE_VARINT_H
#define LULL_BASE_VARINT_H

#include "base/vec.h"

#define LULL_VARINT_MAX 10 /* bytes of the longest */

/* Write it at `to`, which has room for LULL_VARINT_MAX; how many bytes it took. */
static inline size_t lull_varint_put(u8 *to, u64 v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (u8)(v | 0x80);
	to[n++] = (u8)v;
	return n;
}

/* Append it to a vector of bytes. */
static inline void lull_varint_add(struct lull_vec *to, u64 v)
{
	u8 bytes[LULL_VARINT_MAX];

	lull_vec_add(to, bytes, lull_varint_put(bytes, v));
}

/* The same for a signed number: small ones are short whatever their sign. */
static inline void lull_varint_add_i64(struct lull_vec *to, i64 v)
{
	lull_varint_add(to, (u64)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

#endif
