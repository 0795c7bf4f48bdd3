/*
 * parquet_int - how values become the bytes of a page; shared by the parts of the Parquet writer.
 */
#ifndef LULL_EXPORT_PARQUET_INT_H
#define LULL_EXPORT_PARQUET_INT_H

#include "base/types.h"

/* Numbers as the format has them. */
enum lull_parquet_encoding {
	LULL_PARQUET_ENC_PLAIN = 0,
	LULL_PARQUET_ENC_RLE = 3,
	LULL_PARQUET_ENC_DELTA = 5,
	LULL_PARQUET_ENC_DICTIONARY = 8,
};

/* Most bytes that n values of 64 bits take in any of the encodings here. */
static inline size_t lull_parquet_bound(size_t n)
{
	return n * 9 + n / 8 + 1024;
}

/* Bits that numbers up to `max` take; at least 1, because some readers do not expect 0. */
static inline unsigned lull_parquet_width(u64 max)
{
	return max ? 64 - (unsigned)__builtin_clzll(max) : 1;
}

/*
 * Runs and packed groups of small numbers ("RLE / bit-packing hybrid"), as dictionary indices and
 * definition levels are stored. Returns the bytes written to `to`.
 */
size_t lull_parquet_hybrid(u8 *to, const u32 *values, size_t n, unsigned width);

/*
 * Differences, packed in blocks of 128 ("DELTA_BINARY_PACKED"), of `bits` (32 or 64) wide integers.
 * Returns the bytes written to `to`.
 */
size_t lull_parquet_delta(u8 *to, const u64 *values, size_t n, unsigned bits);

#endif
