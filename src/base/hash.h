/*
 * hash - one 64-bit hash for names, inline so that the agent can use it on its hot path.
 *
 * Multiply-and-fold over eight bytes at a time. Not for hostile keys: two different names of one
 * process that collide in 64 bits would share a name in the report.
 */
#ifndef LULL_BASE_HASH_H
#define LULL_BASE_HASH_H

#include <string.h>

#include "base/types.h"

static inline u64 lull_hash_mix(u64 a, u64 b)
{
	unsigned __int128 r = (unsigned __int128)a * b;

	return (u64)r ^ (u64)(r >> 64);
}

/* Hash of `len` bytes; never 0, so that 0 can mean "no name". */
static inline u64 lull_hash(const void *bytes, size_t len)
{
	const u64 k0 = 0xa0761d6478bd642fULL, k1 = 0xe7037ed1a0b428dbULL;
	const u8 *p = bytes;
	u64 h = k0 ^ len, a = 0, b = 0;
	size_t left = len;

	while (left > 16) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, 8);
		h = lull_hash_mix(a ^ k1, b ^ h);
		p += 16;
		left -= 16;
	}
	a = b = 0;
	if (left >= 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + (left - 8), 8);
	} else if (left >= 4) {
		u32 lo, hi;

		memcpy(&lo, p, 4);
		memcpy(&hi, p + (left - 4), 4);
		a = lo;
		b = hi;
	} else if (left) {
		a = (u64)p[0] << 16 | (u64)p[left >> 1] << 8 | p[left - 1];
	}
	h = lull_hash_mix(k1 ^ len, lull_hash_mix(a ^ k1, b ^ h));
	return h ? h : 1;
}

#endif
