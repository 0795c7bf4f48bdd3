/*
 * parquet_int - what the parts of the Parquet writer share: the file as it is put together, and how
 * values become the bytes of a page.
 */
#ifndef LULL_EXPORT_PARQUET_INT_H
#define LULL_EXPORT_PARQUET_INT_H

#include <zstd.h>

#include "base/bytes.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "export/parquet.h"

/* Numbers as the format has them. */
enum lull_parquet_encoding {
	LULL_PARQUET_ENC_PLAIN = 0,
	LULL_PARQUET_ENC_RLE = 3,
	LULL_PARQUET_ENC_DELTA = 5,
	LULL_PARQUET_ENC_DICTIONARY = 8,
};

/* What the format calls the type: physical, the converted type of old readers, bits. */
struct lull_parquet_type_desc {
	u8 physical;
	int converted; /* -1: none */
	u8 bits;
	bool is_signed;
	u8 size_bytes; /* of a value as it is given */
};
extern const struct lull_parquet_type_desc lull_parquet_types[];

/* Where a chunk of a row group lies in the file, and what it holds. */
struct lull_parquet_chunk {
	u64 off;
	u64 dictionary_bytes; /* of the dictionary page with its header, 0 if there is none */
	u64 packed_bytes;     /* of all pages with their headers */
	u64 plain_bytes;      /* the same before packing */
	u64 n_values;
	u64 n_nulls;
	u64 min, max;
	bool has_range;
	bool has_encoding[LULL_PARQUET_ENC_DICTIONARY + 1];
};

/* A column and its chunk of the open row group. */
struct lull_parquet_col {
	struct lull_parquet_column desc;
	struct lull_str pages; /* packed data pages of this row group */
	struct lull_parquet_chunk chunk;
	/* The dictionary of this row group. */
	struct lull_str entries; /* its page, as it is before packing */
	u32 n_entries;
	struct lull_vec index_of; /* texts: u32 by id, index + 1 */
	struct lull_vec met;	  /* texts: u32, ids in the dictionary, to forget them again */
	u64 *slots;		  /* numbers: hash table of values */
	u32 *slot_index;	  /* index + 1, 0 if empty */
	bool has_too_many;	  /* numbers: no dictionary any more */
};

struct lull_parquet_group {
	u64 n_rows;
	size_t first_chunk; /* in chunks */
};

struct lull_parquet {
	FILE *to;
	u64 off;
	int error; /* errno of the first failure */
	struct lull_parquet_col *columns;
	size_t n_columns;
	struct lull_vec groups; /* struct lull_parquet_group */
	struct lull_vec chunks; /* struct lull_parquet_chunk, n_columns of each group */
	struct lull_vec meta;	/* char *: key, value, key, value, ... */
	u64 n_rows;
	u64 group_rows; /* of the open row group */
	size_t block_rows;
	ZSTD_CCtx *zstd;
	u8 *plain, *packed; /* a page before and after packing */
	size_t room;	    /* of each */
	u32 *indices;	    /* of a page */
	u64 *values;	    /* of a page, widened */
};

/* True if values are ids of texts or bytes. */
static inline bool lull_parquet_is_text(const struct lull_parquet_col *c)
{
	return c->desc.type == LULL_PARQUET_TEXT || c->desc.type == LULL_PARQUET_BYTES;
}

/* A value as the format has it in dictionaries and plain pages; returns the end of it. */
static inline u8 *lull_parquet_put_plain(u8 *to, const struct lull_parquet_col *c, u64 v)
{
	if (lull_parquet_types[c->desc.type].physical == 1) {
		lull_put_u32(to, (u32)v);
		return to + 4;
	}
	lull_put_u64(to, v);
	return to + 8;
}

/* The end of the file without its last four bytes: what it holds, where, and the length of that. */
struct lull_str lull_parquet_footer(const struct lull_parquet *p);

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
