/*
 * parquet - columns into one Parquet file.
 *
 *	p = lull_parquet_new(to, columns, n_columns);
 *	for each block of at most LULL_PARQUET_PAGE_ROWS rows
 *		lull_parquet_numbers(p, 0, values, n);	(each column once, in any order)
 *		lull_parquet_texts(p, 1, ids, n);
 *		lull_parquet_end_block(p);
 *	rc = lull_parquet_finish(p, err);
 *
 * What it writes: format 1 with data pages v1, zstd; columns with few different values, and all
 *                 texts, as dictionary and RLE; the others plain, or as packed differences where
 *                 that is smaller; smallest and largest value of each number column per row group.
 * Memory:         the packed bytes of one row group of half a million rows, and its dictionaries.
 * Errors:         kept until lull_parquet_finish().
 */
#ifndef LULL_EXPORT_PARQUET_H
#define LULL_EXPORT_PARQUET_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"

#define LULL_PARQUET_PAGE_ROWS	65536u
#define LULL_PARQUET_GROUP_ROWS (8u * LULL_PARQUET_PAGE_ROWS)

enum lull_parquet_type {
	LULL_PARQUET_U8, /* values are u8 ... */
	LULL_PARQUET_U16,
	LULL_PARQUET_U32,
	LULL_PARQUET_U64,
	LULL_PARQUET_I64, /* u64 that are to be read as signed, or i64 */
	LULL_PARQUET_F64,
	LULL_PARQUET_TEXT,  /* values are u32 ids, 0 is none; valid UTF-8 is the caller's duty */
	LULL_PARQUET_BYTES, /* the same for bytes that are no text */
};

/* The text of an id; valid until the next call. */
typedef const char *lull_parquet_text_fn(void *ctx, u32 id, size_t *len);

struct lull_parquet_column {
	const char *name; /* must live as long as the file is written */
	enum lull_parquet_type type;
	lull_parquet_text_fn *text; /* of texts and bytes */
	void *ctx;
};

struct lull_parquet;

/* Begin a file on `to`, which stays the caller's. The columns are copied. */
struct lull_parquet *lull_parquet_new(FILE *to, const struct lull_parquet_column *columns,
				      size_t n_columns);

/* Add what the file says about itself; key and value are copied. */
void lull_parquet_meta(struct lull_parquet *p, const char *key, const char *value);

/* The values of a number column in this block, as its type says. */
void lull_parquet_numbers(struct lull_parquet *p, size_t column, const void *values, size_t n);

/* The ids of a text column in this block. */
void lull_parquet_texts(struct lull_parquet *p, size_t column, const u32 *ids, size_t n);

/* All columns of the block were given, each with as many values. */
void lull_parquet_end_block(struct lull_parquet *p);

/* Write the rest and free everything. LULL_E_IO if something did not reach the stream. */
int lull_parquet_finish(struct lull_parquet *p, struct lull_err *err);

#endif
