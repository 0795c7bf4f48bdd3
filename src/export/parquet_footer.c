/*
 * parquet_footer - what a Parquet file says about itself: columns, row groups, where they lie.
 *
 * Numbers of fields and enums are those of parquet.thrift, as published.
 */
#include <string.h>

#include "export/parquet_int.h"
#include "export/thrift.h"

#define CODEC_ZSTD 6

const struct lull_parquet_type_desc lull_parquet_types[] = {
	[LULL_PARQUET_U8] = { 1, 11, 8, false, 1 },   [LULL_PARQUET_U16] = { 1, 12, 16, false, 2 },
	[LULL_PARQUET_U32] = { 1, 13, 32, false, 4 }, [LULL_PARQUET_U64] = { 2, 14, 64, false, 8 },
	[LULL_PARQUET_I64] = { 2, 18, 64, true, 8 },  [LULL_PARQUET_F64] = { 5, -1, 0, false, 8 },
	[LULL_PARQUET_TEXT] = { 6, 0, 0, false, 4 },  [LULL_PARQUET_BYTES] = { 6, -1, 0, false, 4 },
};

static void put_logical_type(struct lull_thrift *t, const struct lull_parquet_col *c)
{
	if (c->desc.type == LULL_PARQUET_TEXT) {
		lull_thrift_struct(t, 10);
		lull_thrift_empty(t, 1); /* STRING */
		lull_thrift_end(t);
	} else if (lull_parquet_types[c->desc.type].bits) {
		lull_thrift_struct(t, 10);
		lull_thrift_struct(t, 10); /* INTEGER */
		lull_thrift_i8(t, 1, lull_parquet_types[c->desc.type].bits);
		lull_thrift_bool(t, 2, lull_parquet_types[c->desc.type].is_signed);
		lull_thrift_end(t);
		lull_thrift_end(t);
	}
}

static void put_schema(struct lull_thrift *t, const struct lull_parquet *p)
{
	lull_thrift_list(t, 2, LULL_THRIFT_STRUCT, p->n_columns + 1);
	lull_thrift_begin(t);
	lull_thrift_text(t, 4, "schema");
	lull_thrift_i32(t, 5, (i32)p->n_columns);
	lull_thrift_end(t);
	for (size_t i = 0; i < p->n_columns; i++) {
		const struct lull_parquet_col *c = &p->columns[i];

		lull_thrift_begin(t);
		lull_thrift_i32(t, 1, lull_parquet_types[c->desc.type].physical);
		lull_thrift_i32(t, 3, lull_parquet_is_text(c)); /* optional, or required */
		lull_thrift_text(t, 4, c->desc.name);
		if (lull_parquet_types[c->desc.type].converted >= 0)
			lull_thrift_i32(t, 6, lull_parquet_types[c->desc.type].converted);
		put_logical_type(t, c);
		lull_thrift_end(t);
	}
}

static void put_statistics(struct lull_thrift *t, const struct lull_parquet_col *c,
			   const struct lull_parquet_chunk *chunk)
{
	u8 min[8], max[8];
	size_t len = (size_t)(lull_parquet_put_plain(max, c, chunk->max) - max);

	lull_parquet_put_plain(min, c, chunk->min);
	lull_thrift_struct(t, 12);
	lull_thrift_i64(t, 3, (i64)chunk->n_nulls);
	if (chunk->has_range) {
		lull_thrift_binary(t, 5, max, len);
		lull_thrift_binary(t, 6, min, len);
	}
	lull_thrift_end(t);
}

static void put_chunk(struct lull_thrift *t, const struct lull_parquet_col *c,
		      const struct lull_parquet_chunk *chunk)
{
	size_t n_encodings = 0;

	for (size_t e = 0; e < LULL_COUNT_OF(chunk->has_encoding); e++)
		n_encodings += chunk->has_encoding[e];
	lull_thrift_begin(t);
	lull_thrift_i64(t, 2, 0);
	lull_thrift_struct(t, 3);
	lull_thrift_i32(t, 1, lull_parquet_types[c->desc.type].physical);
	lull_thrift_list(t, 2, LULL_THRIFT_I32, n_encodings + 1);
	lull_thrift_zigzag(t, LULL_PARQUET_ENC_RLE);
	for (size_t e = 0; e < LULL_COUNT_OF(chunk->has_encoding); e++)
		if (chunk->has_encoding[e])
			lull_thrift_zigzag(t, (i64)e);
	lull_thrift_list(t, 3, LULL_THRIFT_BINARY, 1);
	lull_thrift_bytes(t, c->desc.name, strlen(c->desc.name));
	lull_thrift_i32(t, 4, CODEC_ZSTD);
	lull_thrift_i64(t, 5, (i64)chunk->n_values);
	lull_thrift_i64(t, 6, (i64)chunk->plain_bytes);
	lull_thrift_i64(t, 7, (i64)chunk->packed_bytes);
	lull_thrift_i64(t, 9, (i64)(chunk->off + chunk->dictionary_bytes));
	if (chunk->dictionary_bytes)
		lull_thrift_i64(t, 11, (i64)chunk->off);
	put_statistics(t, c, chunk);
	lull_thrift_end(t);
	lull_thrift_end(t);
}

static void put_group(struct lull_thrift *t, const struct lull_parquet *p,
		      const struct lull_parquet_group *g)
{
	const struct lull_parquet_chunk *chunks =
		(const struct lull_parquet_chunk *)p->chunks.at + g->first_chunk;
	u64 plain_bytes = 0, packed_bytes = 0;

	lull_thrift_begin(t);
	lull_thrift_list(t, 1, LULL_THRIFT_STRUCT, p->n_columns);
	for (size_t i = 0; i < p->n_columns; i++) {
		put_chunk(t, &p->columns[i], &chunks[i]);
		plain_bytes += chunks[i].plain_bytes;
		packed_bytes += chunks[i].packed_bytes;
	}
	lull_thrift_i64(t, 2, (i64)plain_bytes);
	lull_thrift_i64(t, 3, (i64)g->n_rows);
	lull_thrift_i64(t, 5, (i64)chunks[0].off);
	lull_thrift_i64(t, 6, (i64)packed_bytes);
	lull_thrift_end(t);
}

static void put_meta(struct lull_thrift *t, const struct lull_parquet *p)
{
	char *const *texts = p->meta.at;

	if (!p->meta.n)
		return;
	lull_thrift_list(t, 5, LULL_THRIFT_STRUCT, p->meta.n / 2);
	for (size_t i = 0; i < p->meta.n; i += 2) {
		lull_thrift_begin(t);
		lull_thrift_text(t, 1, texts[i]);
		lull_thrift_text(t, 2, texts[i + 1]);
		lull_thrift_end(t);
	}
}

struct lull_str lull_parquet_footer(const struct lull_parquet *p)
{
	struct lull_thrift t = LULL_THRIFT_INIT;
	u8 len[4];

	lull_thrift_i32(&t, 1, 1);
	put_schema(&t, p);
	lull_thrift_i64(&t, 3, (i64)p->n_rows);
	lull_thrift_list(&t, 4, LULL_THRIFT_STRUCT, p->groups.n);
	for (size_t i = 0; i < p->groups.n; i++)
		put_group(&t, p, lull_vec_get(&p->groups, i));
	put_meta(&t, p);
	lull_thrift_text(&t, 6, "lull version " LULL_VERSION);
	/* Smallest and largest values are compared as their types say. */
	lull_thrift_list(&t, 7, LULL_THRIFT_STRUCT, p->n_columns);
	for (size_t i = 0; i < p->n_columns; i++) {
		lull_thrift_begin(&t);
		lull_thrift_empty(&t, 1);
		lull_thrift_end(&t);
	}
	lull_thrift_end(&t);
	lull_put_u32(len, (u32)t.bytes.len);
	lull_str_add(&t.bytes, (const char *)len, sizeof(len));
	return t.bytes;
}
