/*
 * convert - doubles as whole numbers, whatever they are.
 *
 * C leaves open what becomes of a double that an integer cannot hold: aarch64 takes the nearest
 * one, x86_64 something else. These take the nearest one everywhere, and 0 for NaN.
 */
#ifndef LULL_BASE_CONVERT_H
#define LULL_BASE_CONVERT_H

#include "base/types.h"

/* Without what is behind the point. */
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
