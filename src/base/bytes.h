/*
 * bytes - numbers in a byte array, whatever the alignment: in columns, and little-endian in files.
 *
 * The compiler turns each into one load or store on little-endian machines. The caller has checked
 * the length.
 */
#ifndef LULL_BASE_BYTES_H
#define LULL_BASE_BYTES_H

#include <string.h>

#include "base/types.h"

/* The unsigned number of 1, 2, 4 or 8 bytes at `at`, as this machine stores it. */
static inline u64 lull_load(const void *at, u8 size_bytes)
{
	u16 v16;
	u32 v32;
	u64 v64;

	switch (size_bytes) {
	case 1:
		return *(const u8 *)at;
	case 2:
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, at, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, at, sizeof(v64));
		return v64;
	}
}

/* Element `ix` of a column of such numbers. */
static inline u64 lull_load_at(const void *column, u8 size_bytes, size_t ix)
{
	return lull_load((const u8 *)column + ix * size_bytes, size_bytes);
}

/* The u16 stored at p. */
static inline u16 lull_get_u16(const u8 *p)
{
	return (u16)(p[0] | p[1] << 8);
}

/* The u32 stored at p. */
static inline u32 lull_get_u32(const u8 *p)
{
	return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

/* The u64 stored at p. */
static inline u64 lull_get_u64(const u8 *p)
{
	return (u64)lull_get_u32(p) | (u64)lull_get_u32(p + 4) << 32;
}

/* Store a u16 at p. */
static inline void lull_put_u16(u8 *p, u16 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
}

/* Store a u32 at p. */
static inline void lull_put_u32(u8 *p, u32 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
	p[2] = (u8)(v >> 16);
	p[3] = (u8)(v >> 24);
}

/* Store a u64 at p. */
static inline void lull_put_u64(u8 *p, u64 v)
{
	lull_put_u32(p, (u32)v);
	lull_put_u32(p + 4, (u32)(v >> 32));
}

#endif
