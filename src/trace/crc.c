#include "trace/crc.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "base/crc_aarch64.h"

/*
 * The table. A CRC is linear: the entry of a byte is the XOR of the entries of its bits, and the
 * entry of bit k is the polynomial moved on by 7 - k steps. So eight constants make all 256.
 */
#define BIT(i, k, entry) ((((i) >> (k)) & 1u) * (entry))
#define T1(i)                                                                       \
	(BIT(i, 0, 0xf26b8303u) ^ BIT(i, 1, 0xe13b70f7u) ^ BIT(i, 2, 0xc79a971fu) ^ \
	 BIT(i, 3, 0x8ad958cfu) ^ BIT(i, 4, 0x105ec76fu) ^ BIT(i, 5, 0x20bd8edeu) ^ \
	 BIT(i, 6, 0x417b1dbcu) ^ BIT(i, 7, 0x82f63b78u))
#define T4(i)  T1(i), T1((i) + 1), T1((i) + 2), T1((i) + 3)
#define T16(i) T4(i), T4((i) + 4), T4((i) + 8), T4((i) + 12)
#define T64(i) T16(i), T16((i) + 16), T16((i) + 32), T16((i) + 48)

static const u32 table[256] = { T64(0u), T64(64u), T64(128u), T64(192u) };

u32 lull_crc32c_table(u32 crc, const void *bytes, size_t len)
{
	const u8 *p = bytes;

	crc = ~crc;
	for (size_t i = 0; i < len; i++)
		crc = table[(crc ^ p[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

#if defined(__aarch64__)
#define HW_TARGET
#define HW_U64(crc, v)	  lull_crc32c_u64(crc, v)
#define HW_U8(crc, v)	  lull_crc32c_u8(crc, v)
#define HAS_INSTRUCTION() lull_crc_has_instructions()
#elif defined(__x86_64__)
#define HW_TARGET	  __attribute__((target("sse4.2")))
#define HW_U64(crc, v)	  ((u32)_mm_crc32_u64(crc, v))
#define HW_U8(crc, v)	  _mm_crc32_u8(crc, v)
#define HAS_INSTRUCTION() (__builtin_cpu_supports("sse4.2") != 0)
#endif

#ifdef HW_TARGET
HW_TARGET static u32 by_instruction(u32 crc, const u8 *p, size_t len)
{
	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		u64 v;

		memcpy(&v, p, 8);
		crc = HW_U64(crc, v);
	}
	for (; len; p++, len--)
		crc = HW_U8(crc, *p);
	return ~crc;
}
#endif

u32 lull_crc32c(u32 crc, const void *bytes, size_t len)
{
#ifdef HW_TARGET
	if (HAS_INSTRUCTION())
		return by_instruction(crc, bytes, len);
#endif
	return lull_crc32c_table(crc, bytes, len);
}
