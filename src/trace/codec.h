/*
 * codec - one column of a block: predict, split into byte planes, compress.
 *
 * What it gives:  arrays of integers in, bytes out, and back. One codec for every column.
 *
 *	predict   PLAIN  the value
 *	          DELTA  v[i] - v[i-1]
 *	          GAP    start[i] - (start[i-1] + dur[i-1])
 *	          DEPTH  start[i] - start[i-1] if the row is deeper than the one before,
 *	                 else start[i] - end of the last row at this depth
 *	quantum   times on a grid (device ticks of 32 ns) become round(v / Q) and a remainder
 *	zigzag    signed values, and all predicted ones: 0 -1 1 -2 ... become 0 1 2 3 ...
 *	planes    byte b of all values together; each plane is CONST, RAW or one zstd frame
 *
 *	bytes     u32 per plane (bits 30-31: 0 const, 1 raw, 2 zstd; below: the constant, or the
 *	          length), the remainder plane first if quantum > 1, then byte 0, byte 1, ...;
 *	          then the bytes of the planes in the same order
 *
 * What it checks: decoding trusts nothing: lengths, modes and zstd output are checked; arithmetic
 *                 wraps.
 * Ownership:      struct lull_codec owns its scratch (about 1.2 MiB) and the zstd contexts.
 * Threads:        one thread per struct lull_codec.
 * Cost:           about 5 ns a value to encode, 2 ns to decode.
 */
#ifndef LULL_TRACE_CODEC_H
#define LULL_TRACE_CODEC_H

#include "base/types.h"
#include "trace/predict.h"
#include "trace/tables.h"

#define LULL_MAX_ROWS \
	65536u /* values of a column in one block: a plane is one zstd block, a u64 column \
		* stays in the L2 cache */
#define LULL_MAX_PLANES 8u

struct lull_codec;

/* How a column is stored: what its entry in the block's directory says. */
struct lull_form {
	u8 predictor; /* enum lull_encoding */
	u8 n_planes;  /* without the remainder plane */
	u16 quantum;  /* 1 = none */
	bool is_zigzag;
	u64 first; /* seeds the prediction */
	u64 min;   /* smallest and largest value, compared as unsigned; not used by decoding */
	u64 max;
};

/* Values to encode: n of size_bytes (1, 2, 4, 8) each. */
struct lull_col_values {
	const void *at;
	size_t n; /* 1 .. LULL_MAX_ROWS */
	u8 size_bytes;
	u8 predictor;
	bool is_signed;
	bool is_time;		   /* look for a quantum */
	struct lull_predict_by by; /* n durations and depths, where the predictor needs them */
};

/* Where decoded values go. */
struct lull_col_target {
	void *at;
	size_t n;
	u8 size_bytes;
	struct lull_predict_by by; /* decoded before; NULL where the block has none */
};

/* A codec with its scratch. Free with lull_codec_free(). */
struct lull_codec *lull_codec_new(void);

/* Free it. Accepts NULL. */
void lull_codec_free(struct lull_codec *c);

/* Bytes that n encoded values can take at most. */
size_t lull_codec_bound(size_t n);

/* Encode into `out`, which holds lull_codec_bound(v->n); returns the bytes written and fills *form.
 */
size_t lull_codec_encode(struct lull_codec *c, const struct lull_col_values *v,
			 struct lull_form *form, u8 *out);

/*
 * Decode exactly to->n values from `len` bytes. Returns 0, LULL_E_FORMAT if the bytes are damaged,
 * or LULL_E_UNSUPPORTED if they use a predictor or plane mode of a later version.
 */
int lull_codec_decode(struct lull_codec *c, const struct lull_form *form, const u8 *bytes,
		      size_t len, const struct lull_col_target *to);

/* Pack `n` bytes of text as one plane at a higher level; `out` holds n + 4. Returns the bytes
 * written. */
size_t lull_codec_pack(struct lull_codec *c, const u8 *text, size_t n, u8 *out);

/* Undo lull_codec_pack() into exactly `n` bytes; result as lull_codec_decode(). */
int lull_codec_unpack(struct lull_codec *c, const u8 *bytes, size_t len, u8 *text, size_t n);

#endif
