/*
 * convert - doubles as whole numbers, whatever they are.
 *
 * C does not define the conversion of a double that is out of range: aarch64 gives the nearest
 * integer, x86_64 another value. These functions give the nearest integer everywhere, and 0 for
 * NaN.
 */
#ifndef LULL_BASE_CONVERT_H
#define LULL_BASE_CONVERT_H

#include "base/types.h"

/* Truncated towards zero. */
static inline u64 lull_u64_of(f64 value)
{
	if (!(value > 0))
		return 0;
	return value < 0x1p64 ? (u64)value : UINT64_MAX;
}

static inline i64 lull_i64_of(f64 value)
{
	if (value >= 0x1p63)
		return INT64_MAX;
	if (value < -0x1p63)
		return INT64_MIN;
	return value == value ? (i64)value : 0;
}

#endif
