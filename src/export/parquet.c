/*
 * A file is "PAR1", row groups, a footer that describes them, its length, "PAR1". A row group holds
 * one chunk for each column: a dictionary page if there is one, then a data page for each block. A
 * page is a header and bytes packed with zstd. Pages are packed as they come and kept until the row
 * group is complete, because chunks lie one after the other.
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
#define ZSTD_LEVEL   1	   /* higher ones gain a few percent for a multiple of the time */
#define MAX_NUMBERS  4096u /* different ones, up to which a dictionary is worth it */
#define NUMBER_SLOTS (4 * MAX_NUMBERS)

enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };

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
static size_t add_page(struct lull_parquet *p, struct lull_parquet_col *c, struct lull_str *to,
		       int kind, const u8 *bytes, size_t len, u32 n_values,
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

static void widen(const struct lull_parquet_col *c, const void *values, size_t n, u64 *to)
{
	const u8 *v8 = values;
	const u16 *v16 = values;
	const u32 *v32 = values;

	switch (lull_parquet_types[c->desc.type].size_bytes) {
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
static void note_range(struct lull_parquet_col *c, const u64 *values, size_t n)
{
	/* Signed numbers compare like unsigned ones whose highest bit is turned over. */
	u64 flip = lull_parquet_types[c->desc.type].is_signed ? 1ULL << 63 : 0, min = UINT64_MAX,
	    max = 0;

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

static void clear_numbers(struct lull_parquet_col *c)
{
	if (!c->slots) {
		c->slots = lull_alloc(NUMBER_SLOTS, sizeof(*c->slots));
		c->slot_index = lull_alloc(NUMBER_SLOTS, sizeof(*c->slot_index));
	}
	memset(c->slot_index, 0, NUMBER_SLOTS * sizeof(*c->slot_index));
}

/* Where a value is in the dictionary, added if it is new; MAX_NUMBERS if there are too many. */
static u32 index_of_number(struct lull_parquet_col *c, u64 v)
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
	lull_str_add(&c->entries, (const char *)bytes,
		     (size_t)(lull_parquet_put_plain(bytes, c, v) - bytes));
	return c->n_entries - 1;
}

static bool find_indices(struct lull_parquet_col *c, const u64 *values, size_t n, u32 *indices)
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

/* Width and indices, after what the page holds already. */
static size_t put_indices(u8 *to, const struct lull_parquet_col *c, const u32 *indices, size_t n)
{
	unsigned width = lull_parquet_width(c->n_entries - 1);

	*to = (u8)width;
	return 1 + lull_parquet_hybrid(to + 1, indices, n, width);
}

static size_t put_numbers(struct lull_parquet *p, struct lull_parquet_col *c, size_t n,
			  enum lull_parquet_encoding *encoding)
{
	bool is_narrow = lull_parquet_types[c->desc.type].physical == 1;
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
		at = lull_parquet_put_plain(at, c, p->values[i]);
	return (size_t)(at - p->plain);
}

void lull_parquet_numbers(struct lull_parquet *p, size_t column, const void *values, size_t n)
{
	struct lull_parquet_col *c = &p->columns[column];
	enum lull_parquet_encoding encoding = LULL_PARQUET_ENC_DICTIONARY;
	size_t len;

	make_room(p, lull_parquet_bound(n));
	widen(c, values, n, p->values);
	note_range(c, p->values, n);
	if (find_indices(c, p->values, n, p->indices)) {
		len = put_indices(p->plain, c, p->indices, n);
	} else {
		/* A column with too many different values will have them in later blocks, too. */
		c->has_too_many = true;
		len = put_numbers(p, c, n, &encoding);
	}
	add_page(p, c, &c->pages, PAGE_DATA, p->plain, len, (u32)n, encoding);
	c->chunk.n_values += n;
	p->block_rows = n;
}

/* ---- texts ---- */

static u32 index_of_text(struct lull_parquet_col *c, u32 id)
{
	u32 *index;
	size_t len;
	const char *text;
	u8 head[4];

	if (id >= c->index_of.n)
		lull_vec_extend(&c->index_of, id + 1 - c->index_of.n);
	index = (u32 *)c->index_of.at + id;
	if (*index != 0)
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
	struct lull_parquet_col *c = &p->columns[column];
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

static void forget_texts(struct lull_parquet_col *c)
{
	const u32 *met = c->met.at;
	u32 *index_of = c->index_of.at;

	for (size_t i = 0; i < c->met.n; i++)
		index_of[met[i]] = 0;
	c->met.n = 0;
}

/* ---- row groups ---- */

static void end_chunk(struct lull_parquet *p, struct lull_parquet_col *c)
{
	struct lull_str dictionary = LULL_STR_INIT;

	c->chunk.off = p->off;
	/* Every page of texts refers to a dictionary, even an empty one. */
	if (c->chunk.has_encoding[LULL_PARQUET_ENC_DICTIONARY]) {
		make_room(p, c->entries.len);
		c->chunk.dictionary_bytes = add_page(
			p, c, &dictionary, PAGE_DICTIONARY, (const u8 *)lull_str_text(&c->entries),
			c->entries.len, c->n_entries, LULL_PARQUET_ENC_PLAIN);
	}
	put(p, dictionary.at, dictionary.len);
	put(p, c->pages.at, c->pages.len);
	*(struct lull_parquet_chunk *)lull_vec_push(&p->chunks) = c->chunk;
	c->chunk = (struct lull_parquet_chunk){ 0 };
	c->n_entries = 0;
	lull_str_clear(&c->pages);
	lull_str_clear(&c->entries);
	lull_str_release(&dictionary);
	if (lull_parquet_is_text(c))
		forget_texts(c);
}

static void end_group(struct lull_parquet *p)
{
	struct lull_parquet_group *group = lull_vec_push(&p->groups);

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
	lull_vec_init(&p->groups, sizeof(struct lull_parquet_group));
	lull_vec_init(&p->chunks, sizeof(struct lull_parquet_chunk));
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

static void free_column(struct lull_parquet_col *c)
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
	struct lull_str footer;
	int error;

	if (p->group_rows)
		end_group(p);
	footer = lull_parquet_footer(p);
	put(p, footer.at, footer.len);
	put(p, MAGIC, MAGIC_BYTES);
	lull_str_release(&footer);
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
