/*
 * crc_aarch64 - the CRC instructions of aarch64, inline.
 *
 * As text: gcc and clang spell differently how a single function may use an extension of the
 * architecture, and clang's <arm_acle.h> has these only where the whole program may.
 */
#ifndef LULL_BASE_CRC_AARCH64_H
#define LULL_BASE_CRC_AARCH64_H

#if defined(__aarch64__)
#include <sys/auxv.h>

#include "base/types.h"

#define LULL_HWCAP_CRC32 (1u << 7) /* HWCAP_CRC32 of the kernel's interface */

/* Whether this CPU has them. */
static inline bool lull_crc_has_instructions(void)
{
	return (getauxval(AT_HWCAP) & LULL_HWCAP_CRC32) != 0;
}

/* `crc` moved on by eight bytes or one; without inversion before and after. */
#define LULL_CRC_INSTRUCTION(name, type, text)                                \
	static inline u32 name(u32 crc, type v)                               \
	{                                                                     \
		__asm__(".arch_extension crc\n\t" text : "+r"(crc) : "r"(v)); \
		return crc;                                                   \
	}
LULL_CRC_INSTRUCTION(lull_crc32_u64, u64, "crc32x %w0, %w0, %x1")
LULL_CRC_INSTRUCTION(lull_crc32_u8, u8, "crc32b %w0, %w0, %w1")
LULL_CRC_INSTRUCTION(lull_crc32c_u64, u64, "crc32cx %w0, %w0, %x1")
LULL_CRC_INSTRUCTION(lull_crc32c_u8, u8, "crc32cb %w0, %w0, %w1")

#endif
#endif
