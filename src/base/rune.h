/*
 * rune - one character as UTF-8. Inline only: the agent uses it, too.
 */
#ifndef LULL_BASE_RUNE_H
#define LULL_BASE_RUNE_H

#include "base/types.h"

/* Write a character (21 bits at most); how many bytes it took, 1 to 4. */
static inline u32 lull_rune_put(char to[static 4], u32 c)
{
	static const u8 marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	u32 n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (u32 i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(marks[n] | (n == 4 ? c & 7 : c));
	return n;
}

#endif
