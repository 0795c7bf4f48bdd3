/*
 * A file is "PAR1", row groups, a footer that describes them, its length, "PAR1". A row group holds
 * one chunk for each column: a dictionary page if there is one, then a data page for each block. A
 * page is a header and bytes packed with zstd. Pages are packed as they come and kept until the row
 * group is complete, because chunks lie one behind the other.
 *
 * Numbers of fields and enums are those of parquet.thrift, as published.
 */
#include "export/parquet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/vec.h"
#include "export/parquet_int.h"
#include "export/thrift.h"

#define MAGIC	     "PAR1"
#define MAGIC_BYTES  4u
#define ZSTD_LEVEL   1 /* higher ones gain a few percent for a multiple of the time */
#define CODEC_ZSTD   6
#define MAX_NUMBERS  4096u /* different ones, up to which a dictionary is worth it */
#define NUMBER_SLOTS (4 * MAX_NUMBERS)

enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

/* What the format calls the type: physical, the converted type of old readers, bits. */
static const struct {
	u8 physical;
	int converted; /* -1: none */
	u8 bits;
	bool is_signed;
	u8 size_bytes; /* of a value as it is given */
} types[] = {
	[LULL_PARQUET_U8] = { 1, 11, 8, false, 1 },   [LULL_PARQUET_U16] = { 1, 12, 16, false, 2 },
	[LULL_PARQUET_U32] = { 1, 13, 32, false, 4 }, [LULL_PARQUET_U64] = { 2, 14, 64, false, 8 },
	[LULL_PARQUET_I64] = { 2, 18, 64, true, 8 },  [LULL_PARQUET_F64] = { 5, -1, 0, false, 8 },
	[LULL_PARQUET_TEXT] = { 6, 0, 0, false, 4 },  [LULL_PARQUET_BYTES] = { 6, -1, 0, false, 4 },
};

/* Where a chunk of a row group lies in the file, and what it holds. */
struct chunk {
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

struct column {
	struct lull_parquet_column desc;
	struct lull_str pages; /* packed data pages of this row group */
	struct chunk chunk;
	/* The dictionary of this row group. */
	struct lull_str entries; /* its page, as it is before packing */
	u32 n_entries;
	struct lull_vec index_of; /* texts: u32 by id, index + 1 */
	struct lull_vec met;	  /* texts: u32, ids in the dictionary, to forget them again */
	u64 *slots;		  /* numbers: hash table of values */
	u32 *slot_index;	  /* index + 1, 0 if empty */
	bool has_too_many;	  /* numbers: no dictionary any more */
};

struct group {
	u64 n_rows;
	size_t first_chunk; /* in chunks */
};

struct lull_parquet {
	FILE *to;
	u64 off;
	int error; /* errno of the first failure */
	struct column *columns;
	size_t n_columns;
	struct lull_vec groups; /* struct group */
	struct lull_vec chunks; /* struct chunk, n_columns of each group */
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

static bool is_text(const struct column *c)
{
	return c->desc.type == LULL_PARQUET_TEXT || c->desc.type == LULL_PARQUET_BYTES;
}

/* ---- bytes ---- */

static void put(struct lull_parquet *p, const void *bytes, size_t len)
{
	if (!p->error && len && fwrite(bytes, 1, len, p->to) != len)
		p->error = errno ? errno : EIO;
	p->off += len;
}

/* Room for a page that is `plain_bytes` long before packing. */
static void make_room(struct lull_parquet *p, size_t plain_bytes)
{
	if (plain_bytes <= p->room)
		return;
	p->room = plain_bytes;
	p->plain = lull_realloc(p->plain, plain_bytes, 1);
	p->packed = lull_realloc(p->packed, ZSTD_compressBound(plain_bytes), 1);
}

/* The header of a page. */
static void put_page_header(struct lull_thrift *t, int kind, const size_t sizes[2], u32 n_values,
			    enum lull_parquet_encoding encoding)
{
	lull_thrift_i32(t, 1, kind);
	lull_thrift_i32(t, 2, (i32)sizes[0]);
	lull_thrift_i32(t, 3, (i32)sizes[1]);
	lull_thrift_struct(t, kind == PAGE_DATA ? 5 : 7);
	lull_thrift_i32(t, 1, (i32)n_values);
	lull_thrift_i32(t, 2, encoding);
	if (kind == PAGE_DATA) {
		lull_thrift_i32(t, 3, LULL_PARQUET_ENC_RLE);
		lull_thrift_i32(t, 4, LULL_PARQUET_ENC_RLE);
	}
	lull_thrift_end(t);
	lull_thrift_end(t);
}

/* Pack a page and append it to `to`, its header first; returns what was appended. */
static size_t add_page(struct lull_parquet *p, struct column *c, struct lull_str *to, int kind,
		       const u8 *bytes, size_t len, u32 n_values,
		       enum lull_parquet_encoding encoding)
{
	struct lull_thrift header = LULL_THRIFT_INIT;
	size_t packed = ZSTD_compressCCtx(p->zstd, p->packed, ZSTD_compressBound(len), bytes, len,
					  ZSTD_LEVEL);
	size_t appended;

	if (ZSTD_isError(packed)) {
		p->error = p->error ? p->error : ENOMEM;
		packed = 0;
	}
	put_page_header(&header, kind, (size_t[]){ len, packed }, n_values, encoding);
	lull_str_add(to, header.bytes.at, header.bytes.len);
	lull_str_add(to, (const char *)p->packed, packed);
	appended = header.bytes.len + packed;
	c->chunk.plain_bytes += header.bytes.len + len;
	c->chunk.packed_bytes += appended;
	c->chunk.has_encoding[encoding] = true;
	lull_str_release(&header.bytes);
	return appended;
}

/* ---- numbers ---- */

static void widen(const struct column *c, const void *values, size_t n, u64 *to)
{
	const u8 *v8 = values;
	const u16 *v16 = values;
	const u32 *v32 = values;

	switch (types[c->desc.type].size_bytes) {
	case 1:
		for (size_t i = 0; i < n; i++)
			to[i] = v8[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			to[i] = v16[i];
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			to[i] = v32[i];
		break;
	default:
		memcpy(to, values, n * sizeof(u64));
		break;
	}
}

/* Smallest and largest value, for readers that look for a part. */
static void note_range(struct column *c, const u64 *values, size_t n)
{
	/* Signed numbers compare like unsigned ones whose highest bit is turned over. */
	u64 flip = types[c->desc.type].is_signed ? 1ULL << 63 : 0, min = UINT64_MAX, max = 0;

	if (c->desc.type == LULL_PARQUET_F64)
		return;
	for (size_t i = 0; i < n; i++) {
		u64 v = values[i] ^ flip;

		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	min ^= flip;
	max ^= flip;
	if (!c->chunk.has_range || (min ^ flip) < (c->chunk.min ^ flip))
		c->chunk.min = min;
	if (!c->chunk.has_range || (max ^ flip) > (c->chunk.max ^ flip))
		c->chunk.max = max;
	c->chunk.has_range = true;
}

static u8 *put_plain(u8 *to, const struct column *c, u64 v)
{
	if (types[c->desc.type].physical == 1) {
		lull_put_u32(to, (u32)v);
		return to + 4;
	}
	lull_put_u64(to, v);
	return to + 8;
}

static void clear_numbers(struct column *c)
{
	if (!c->slots) {
		c->slots = lull_alloc(NUMBER_SLOTS, sizeof(*c->slots));
		c->slot_index = lull_alloc(NUMBER_SLOTS, sizeof(*c->slot_index));
	}
	memset(c->slot_index, 0, NUMBER_SLOTS * sizeof(*c->slot_index));
}

/* Where a value is in the dictionary, added if it is new; MAX_NUMBERS if there are too many. */
static u32 index_of_number(struct column *c, u64 v)
{
	u32 slot = (u32)((v * 0x9e3779b97f4a7c15ULL) >> 40) % NUMBER_SLOTS;
	u8 bytes[8];

	while (c->slot_index[slot] && c->slots[slot] != v)
		slot = (slot + 1) % NUMBER_SLOTS;
	if (c->slot_index[slot])
		return c->slot_index[slot] - 1;
	if (c->n_entries == MAX_NUMBERS)
		return MAX_NUMBERS;
	c->slots[slot] = v;
	c->slot_index[slot] = ++c->n_entries;
	lull_str_add(&c->entries, (const char *)bytes, (size_t)(put_plain(bytes, c, v) - bytes));
	return c->n_entries - 1;
}

static bool find_indices(struct column *c, const u64 *values, size_t n, u32 *indices)
{
	if (c->has_too_many)
		return false;
	if (!c->n_entries)
		clear_numbers(c);
	for (size_t i = 0; i < n; i++) {
		/* Runs are frequent where a dictionary makes sense. */
		indices[i] = i && values[i] == values[i - 1] ? indices[i - 1]
							     : index_of_number(c, values[i]);
		if (indices[i] == MAX_NUMBERS)
			return false;
	}
	return true;
}

/* Width and indices, behind what the page holds already. */
static size_t put_indices(u8 *to, const struct column *c, const u32 *indices, size_t n)
{
	unsigned width = lull_parquet_width(c->n_entries - 1);

	*to = (u8)width;
	return 1 + lull_parquet_hybrid(to + 1, indices, n, width);
}

static size_t put_numbers(struct lull_parquet *p, struct column *c, size_t n,
			  enum lull_parquet_encoding *encoding)
{
	bool is_narrow = types[c->desc.type].physical == 1;
	u8 *at = p->plain;
	size_t len;

	if (c->desc.type != LULL_PARQUET_F64) {
		*encoding = LULL_PARQUET_ENC_DELTA;
		len = lull_parquet_delta(p->plain, p->values, n, is_narrow ? 32 : 64);
		if (len < n * (is_narrow ? 4 : 8) / 8 * 7)
			return len;
	}
	*encoding = LULL_PARQUET_ENC_PLAIN;
	for (size_t i = 0; i < n; i++)
		at = put_plain(at, c, p->values[i]);
	return (size_t)(at - p->plain);
}

void lull_parquet_numbers(struct lull_parquet *p, size_t column, const void *values, size_t n)
{
	struct column *c = &p->columns[column];
	enum lull_parquet_encoding encoding = LULL_PARQUET_ENC_DICTIONARY;
	size_t len;

	make_room(p, lull_parquet_bound(n));
	widen(c, values, n, p->values);
	note_range(c, p->values, n);
	if (find_indices(c, p->values, n, p->indices)) {
		len = put_indices(p->plain, c, p->indices, n);
	} else {
		/* What has too many different values now will have them later. */
		c->has_too_many = true;
		len = put_numbers(p, c, n, &encoding);
	}
	add_page(p, c, &c->pages, PAGE_DATA, p->plain, len, (u32)n, encoding);
	c->chunk.n_values += n;
	p->block_rows = n;
}

/* ---- texts ---- */

static u32 index_of_text(struct column *c, u32 id)
{
	u32 *index;
	size_t len;
	const char *text;
	u8 head[4];

	if (id >= c->index_of.n)
		lull_vec_extend(&c->index_of, id + 1 - c->index_of.n);
	index = (u32 *)c->index_of.at + id;
	if (*index)
		return *index - 1;
	text = c->desc.text(c->desc.ctx, id, &len);
	lull_put_u32(head, (u32)len);
	lull_str_add(&c->entries, (const char *)head, sizeof(head));
	lull_str_add(&c->entries, text, len);
	lull_vec_add(&c->met, &id, 1);
	*index = ++c->n_entries;
	return *index - 1;
}

/* Which values are there: 1, or 0 for none; with its length before it. */
static size_t put_levels(u8 *to, const u32 *levels, size_t n)
{
	size_t len = lull_parquet_hybrid(to + 4, levels, n, 1);

	lull_put_u32(to, (u32)len);
	return 4 + len;
}

void lull_parquet_texts(struct lull_parquet *p, size_t column, const u32 *ids, size_t n)
{
	struct column *c = &p->columns[column];
	size_t n_there = 0, len;

	make_room(p, 2 * lull_parquet_bound(n));
	for (size_t i = 0; i < n; i++)
		p->indices[i] = ids[i] != 0;
	len = put_levels(p->plain, p->indices, n);
	for (size_t i = 0; i < n; i++)
		if (ids[i])
			p->indices[n_there++] = index_of_text(c, ids[i]);
	/* Without an entry there is no width: one bit, and no indices. */
	if (c->n_entries)
		len += put_indices(p->plain + len, c, p->indices, n_there);
	else
		p->plain[len++] = 1;
	add_page(p, c, &c->pages, PAGE_DATA, p->plain, len, (u32)n, LULL_PARQUET_ENC_DICTIONARY);
	c->chunk.n_values += n;
	c->chunk.n_nulls += n - n_there;
	p->block_rows = n;
}

static void forget_texts(struct column *c)
{
	const u32 *met = c->met.at;
	u32 *index_of = c->index_of.at;

	for (size_t i = 0; i < c->met.n; i++)
		index_of[met[i]] = 0;
	c->met.n = 0;
}

/* ---- row groups ---- */

static void end_chunk(struct lull_parquet *p, struct column *c)
{
	struct lull_str dictionary = LULL_STR_INIT;

	c->chunk.off = p->off;
	/* Every page of texts refers to a dictionary, be it empty. */
	if (c->chunk.has_encoding[LULL_PARQUET_ENC_DICTIONARY]) {
		make_room(p, c->entries.len);
		c->chunk.dictionary_bytes = add_page(
			p, c, &dictionary, PAGE_DICTIONARY, (const u8 *)lull_str_text(&c->entries),
			c->entries.len, c->n_entries, LULL_PARQUET_ENC_PLAIN);
	}
	put(p, dictionary.at, dictionary.len);
	put(p, c->pages.at, c->pages.len);
	*(struct chunk *)lull_vec_push(&p->chunks) = c->chunk;
	c->chunk = (struct chunk){ 0 };
	c->n_entries = 0;
	lull_str_clear(&c->pages);
	lull_str_clear(&c->entries);
	lull_str_release(&dictionary);
	if (is_text(c))
		forget_texts(c);
}

static void end_group(struct lull_parquet *p)
{
	struct group *group = lull_vec_push(&p->groups);

	group->n_rows = p->group_rows;
	group->first_chunk = p->chunks.n;
	for (size_t i = 0; i < p->n_columns; i++)
		end_chunk(p, &p->columns[i]);
	p->group_rows = 0;
}

void lull_parquet_end_block(struct lull_parquet *p)
{
	p->n_rows += p->block_rows;
	p->group_rows += p->block_rows;
	p->block_rows = 0;
	if (p->group_rows + LULL_PARQUET_PAGE_ROWS > LULL_PARQUET_GROUP_ROWS)
		end_group(p);
}

/* ---- the footer ---- */

static void put_logical_type(struct lull_thrift *t, const struct column *c)
{
	if (c->desc.type == LULL_PARQUET_TEXT) {
		lull_thrift_struct(t, 10);
		lull_thrift_empty(t, 1); /* STRING */
		lull_thrift_end(t);
	} else if (types[c->desc.type].bits) {
		lull_thrift_struct(t, 10);
		lull_thrift_struct(t, 10); /* INTEGER */
		lull_thrift_i8(t, 1, types[c->desc.type].bits);
		lull_thrift_bool(t, 2, types[c->desc.type].is_signed);
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
		const struct column *c = &p->columns[i];

		lull_thrift_begin(t);
		lull_thrift_i32(t, 1, types[c->desc.type].physical);
		lull_thrift_i32(t, 3, is_text(c)); /* optional, or required */
		lull_thrift_text(t, 4, c->desc.name);
		if (types[c->desc.type].converted >= 0)
			lull_thrift_i32(t, 6, types[c->desc.type].converted);
		put_logical_type(t, c);
		lull_thrift_end(t);
	}
}

static void put_statistics(struct lull_thrift *t, const struct column *c, const struct chunk *chunk)
{
	u8 min[8], max[8];
	size_t len = (size_t)(put_plain(max, c, chunk->max) - max);

	put_plain(min, c, chunk->min);
	lull_thrift_struct(t, 12);
	lull_thrift_i64(t, 3, (i64)chunk->n_nulls);
	if (chunk->has_range) {
		lull_thrift_binary(t, 5, max, len);
		lull_thrift_binary(t, 6, min, len);
	}
	lull_thrift_end(t);
}

static void put_chunk(struct lull_thrift *t, const struct column *c, const struct chunk *chunk)
{
	size_t n_encodings = 0;

	for (size_t e = 0; e < LULL_COUNT_OF(chunk->has_encoding); e++)
		n_encodings += chunk->has_encoding[e];
	lull_thrift_begin(t);
	lull_thrift_i64(t, 2, 0);
	lull_thrift_struct(t, 3);
	lull_thrift_i32(t, 1, types[c->desc.type].physical);
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

static void put_group(struct lull_thrift *t, const struct lull_parquet *p, const struct group *g)
{
	const struct chunk *chunks = (const struct chunk *)p->chunks.at + g->first_chunk;
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

static void put_footer(struct lull_parquet *p)
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
	put(p, t.bytes.at, t.bytes.len);
	put(p, len, sizeof(len));
	put(p, MAGIC, MAGIC_BYTES);
	lull_str_release(&t.bytes);
}

/* ---- the file ---- */

struct lull_parquet *lull_parquet_new(FILE *to, const struct lull_parquet_column *columns,
				      size_t n_columns)
{
	struct lull_parquet *p = lull_alloc(1, sizeof(*p));

	p->to = to;
	p->n_columns = n_columns;
	p->columns = lull_alloc(n_columns, sizeof(*p->columns));
	for (size_t i = 0; i < n_columns; i++) {
		p->columns[i].desc = columns[i];
		lull_vec_init(&p->columns[i].index_of, sizeof(u32));
		lull_vec_init(&p->columns[i].met, sizeof(u32));
	}
	lull_vec_init(&p->groups, sizeof(struct group));
	lull_vec_init(&p->chunks, sizeof(struct chunk));
	lull_vec_init(&p->meta, sizeof(char *));
	p->indices = lull_alloc(LULL_PARQUET_PAGE_ROWS, sizeof(u32));
	p->values = lull_alloc(LULL_PARQUET_PAGE_ROWS, sizeof(u64));
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd)
		p->error = ENOMEM;
	put(p, MAGIC, MAGIC_BYTES);
	return p;
}

void lull_parquet_meta(struct lull_parquet *p, const char *key, const char *value)
{
	char *texts[] = { lull_strdup(key), lull_strdup(value) };

	lull_vec_add(&p->meta, texts, 2);
}

static void free_column(struct column *c)
{
	lull_str_release(&c->pages);
	lull_str_release(&c->entries);
	lull_vec_release(&c->index_of);
	lull_vec_release(&c->met);
	free(c->slots);
	free(c->slot_index);
}

int lull_parquet_finish(struct lull_parquet *p, struct lull_err *err)
{
	char **meta = p->meta.at;
	int error;

	if (p->group_rows)
		end_group(p);
	put_footer(p);
	if (!p->error && (fflush(p->to) || ferror(p->to)))
		p->error = errno ? errno : EIO;
	for (size_t i = 0; i < p->n_columns; i++)
		free_column(&p->columns[i]);
	for (size_t i = 0; i < p->meta.n; i++)
		free(meta[i]);
	lull_vec_release(&p->meta);
	lull_vec_release(&p->groups);
	lull_vec_release(&p->chunks);
	ZSTD_freeCCtx(p->zstd);
	free(p->columns);
	free(p->plain);
	free(p->packed);
	free(p->indices);
	free(p->values);
	error = p->error;
	free(p);
	errno = error;
	return error ? lull_fail_errno(err, "writing the export") : LULL_OK;
}
