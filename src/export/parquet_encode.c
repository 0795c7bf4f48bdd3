#include <string.h>

#include "base/bytes.h"
#include "export/parquet_int.h"
#include "export/proto.h"

/* ---- packing ---- */

/* `n` values, a multiple of 8, of `width` bits each, lowest bit first. */
static u8 *pack(u8 *to, const u64 *values, size_t n, unsigned width)
{
	unsigned __int128 bits = 0;
	unsigned n_bits = 0;

	for (size_t i = 0; i < n; i++) {
		bits |= (unsigned __int128)values[i] << n_bits;
		n_bits += width;
		while (n_bits >= 32) {
			lull_put_u32(to, (u32)bits);
			to += 4;
			bits >>= 32;
			n_bits -= 32;
		}
	}
	for (; n_bits; n_bits -= n_bits < 8 ? n_bits : 8, bits >>= 8)
		*to++ = (u8)bits;
	return to;
}

/* ---- runs and groups ---- */

#define GROUP 8u /* packed values come in eights */

/* A run of at least this many equal values is cheaper than groups. */
#define MIN_RUN 16u

static size_t run_len(const u32 *values, size_t n)
{
	size_t len = 1;

	while (len < n && values[len] == values[0])
		len++;
	return len;
}

static u8 *put_run(u8 *to, u32 value, size_t n, unsigned width)
{
	to = lull_proto_varint(to, (u64)n << 1);
	for (unsigned byte = 0; byte < (width + 7) / 8; byte++)
		*to++ = (u8)(value >> 8 * byte);
	return to;
}

/* Values that make no run, the last group filled up with zeros. */
static u8 *put_groups(u8 *to, const u32 *values, size_t n, unsigned width)
{
	u64 group[GROUP];

	to = lull_proto_varint(to, (u64)((n + GROUP - 1) / GROUP) << 1 | 1);
	for (size_t i = 0; i < n; i += GROUP) {
		for (size_t k = 0; k < GROUP; k++)
			group[k] = i + k < n ? values[i + k] : 0;
		to = pack(to, group, GROUP, width);
	}
	return to;
}

size_t lull_parquet_hybrid(u8 *to, const u32 *values, size_t n, unsigned width)
{
	const u8 *begin = to;
	size_t first = 0, at = 0; /* values [first, at) wait to be packed */

	while (at < n) {
		size_t len = run_len(values + at, n - at),
		       pad = (GROUP - (at - first) % GROUP) % GROUP;

		if (len < MIN_RUN + pad) {
			at += len;
			continue;
		}
		/* Groups are whole, but for the last of the page. */
		at += pad;
		len -= pad;
		if (at > first)
			to = put_groups(to, values + first, at - first, width);
		to = put_run(to, values[at], len, width);
		at += len;
		first = at;
	}
	if (at > first)
		to = put_groups(to, values + first, at - first, width);
	return (size_t)(to - begin);
}

/* ---- differences ---- */

#define BLOCK  128u /* values */
#define N_MINI 4u   /* parts of a block, each with its own width */
#define MINI   (BLOCK / N_MINI)

static u64 zigzag(i64 v)
{
	return (u64)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

/* One block: n differences, at most BLOCK, and zeros after them. */
static u8 *put_block(u8 *to, u64 *deltas, size_t n, u64 mask)
{
	i64 min = INT64_MAX;
	u8 *widths;

	for (size_t i = 0; i < n; i++)
		min = (i64)deltas[i] < min ? (i64)deltas[i] : min;
	to = lull_proto_varint(to, zigzag(min));
	widths = to;
	to += N_MINI;
	for (size_t m = 0; m < N_MINI; m++) {
		u64 all = 0;

		for (size_t i = m * MINI; i < (m + 1) * MINI; i++) {
			deltas[i] = i < n ? (deltas[i] - (u64)min) & mask : 0;
			all |= deltas[i];
		}
		widths[m] = (u8)(all ? lull_parquet_width(all) : 0);
		if (m * MINI < n && widths[m])
			to = pack(to, deltas + m * MINI, MINI, widths[m]);
	}
	return to;
}

size_t lull_parquet_delta(u8 *to, const u64 *values, size_t n, unsigned bits)
{
	const u8 *begin = to;
	u64 deltas[BLOCK], mask = bits == 32 ? UINT32_MAX : UINT64_MAX;

	to = lull_proto_varint(to, BLOCK);
	to = lull_proto_varint(to, N_MINI);
	to = lull_proto_varint(to, n);
	to = lull_proto_varint(to, zigzag(bits == 32 ? (i32)values[0] : (i64)values[0]));
	for (size_t i = 1; i < n; i += BLOCK) {
		size_t in_block = n - i < BLOCK ? n - i : BLOCK;

		for (size_t k = 0; k < in_block; k++) {
			u64 delta = values[i + k] - values[i + k - 1];

			deltas[k] = bits == 32 ? (u64)(i64)(i32)delta : delta;
		}
		to = put_block(to, deltas, in_block, mask);
	}
	return (size_t)(to - begin);
}
