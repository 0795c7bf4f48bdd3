#include "trace/file_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sort.h"
#include "trace/crc.h"

#define HEADER_MAGIC	"LULLFILE"
#define TRAILER_MAGIC	"LULLSEAL"
#define BYTE_ORDER_MARK 0x01020304u
#define CLOCK_MONO	1u
#define CLOCK_IMPORTED	2u
#define CRC_OFF		60u

void lull_file_put_header(u8 at[LULL_HEADER_BYTES], const struct lull_file_info *info)
{
	memset(at, 0, LULL_HEADER_BYTES);
	memcpy(at, HEADER_MAGIC, 8);
	lull_put_u16(at + 8, LULL_FORMAT_MAJOR);
	lull_put_u16(at + 10, LULL_FORMAT_MINOR);
	lull_put_u16(at + 12, LULL_FORMAT_MAJOR << 8);
	lull_put_u16(at + 14, info->flags);
	lull_put_u32(at + 16, BYTE_ORDER_MARK);
	lull_put_u32(at + 20, info->flags & LULL_FILE_IMPORTED ? CLOCK_IMPORTED : CLOCK_MONO);
	lull_put_u64(at + 24, info->epoch_ns);
	lull_put_u64(at + 32, info->epoch_utc_ns);
	memcpy(at + 40, info->id, sizeof(info->id));
	lull_put_u32(at + CRC_OFF, lull_crc32c(0, at, CRC_OFF));
}

int lull_file_get_header(const u8 at[LULL_HEADER_BYTES], struct lull_file_info *info, u16 *format,
			 struct lull_err *err)
{
	u16 needs = lull_get_u16(at + 12);

	if (memcmp(at, HEADER_MAGIC, 8) != 0)
		return lull_fail(err, LULL_E_FORMAT, "not a lull report");
	if (lull_get_u32(at + CRC_OFF) != lull_crc32c(0, at, CRC_OFF) ||
	    lull_get_u32(at + 16) != BYTE_ORDER_MARK)
		return lull_fail(err, LULL_E_FORMAT, "the header of the report is damaged");
	*format = (u16)(lull_get_u16(at + 8) << 8 | lull_get_u16(at + 10));
	if (needs > LULL_FORMAT || needs >> 8 != LULL_FORMAT_MAJOR)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "the report has format %u.%u; lull %s reads up to %u.%u",
				 needs >> 8, needs & 0xff, LULL_VERSION, LULL_FORMAT_MAJOR,
				 LULL_FORMAT_MINOR);
	info->flags = lull_get_u16(at + 14);
	info->epoch_ns = lull_get_u64(at + 24);
	info->epoch_utc_ns = lull_get_u64(at + 32);
	memcpy(info->id, at + 40, sizeof(info->id));
	return 0;
}

struct lull_entry lull_file_entry(const struct lull_block_head *h, u64 off)
{
	bool has_ids = h->kind == LULL_BLOCK_STRINGS || h->kind == LULL_BLOCK_KEYED;

	return (struct lull_entry){
		.off = off,
		.min_start = h->min_start,
		.max_end = h->max_end,
		.max_start = h->max_start,
		.lanes = h->lanes,
		.n_rows = h->n_rows,
		.size_bytes = h->size_bytes,
		.table_id = h->table_id,
		.kind = h->kind,
		.flags = h->flags,
		.seq = h->seq,
		.first_id = has_ids ? h->extra : 0,
	};
}

void lull_file_put_entry(u8 at[LULL_INDEX_ENTRY_BYTES], const struct lull_entry *e)
{
	lull_put_u64(at, e->off);
	lull_put_u64(at + 8, e->min_start);
	lull_put_u64(at + 16, e->max_end);
	lull_put_u64(at + 24, e->max_start);
	lull_put_u64(at + 32, e->lanes);
	lull_put_u32(at + 40, e->n_rows);
	lull_put_u32(at + 44, e->size_bytes);
	lull_put_u16(at + 48, e->table_id);
	at[50] = e->kind;
	at[51] = e->flags;
	lull_put_u32(at + 52, e->seq);
	lull_put_u32(at + 56, e->first_id);
	lull_put_u32(at + 60, 0);
}

bool lull_file_get_entry(const u8 at[LULL_INDEX_ENTRY_BYTES], struct lull_entry *e)
{
	e->off = lull_get_u64(at);
	e->min_start = lull_get_u64(at + 8);
	e->max_end = lull_get_u64(at + 16);
	e->max_start = lull_get_u64(at + 24);
	e->lanes = lull_get_u64(at + 32);
	e->n_rows = lull_get_u32(at + 40);
	e->size_bytes = lull_get_u32(at + 44);
	e->table_id = lull_get_u16(at + 48);
	e->kind = at[50];
	e->flags = at[51];
	e->seq = lull_get_u32(at + 52);
	e->first_id = lull_get_u32(at + 56);
	return e->n_rows <= LULL_MAX_ROWS;
}

int lull_file_compare_entries(const void *a, const void *b)
{
	const struct lull_entry *x = a, *y = b;

	if (x->table_id != y->table_id)
		return x->table_id < y->table_id ? -1 : 1;
	if (x->min_start != y->min_start)
		return x->min_start < y->min_start ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static size_t index_block_bytes(size_t n)
{
	return LULL_BLOCK_HEAD_BYTES + n * LULL_INDEX_ENTRY_BYTES;
}

size_t lull_file_index_bytes(size_t n)
{
	return index_block_bytes(n) + LULL_TRAILER_BYTES;
}

void lull_file_put_index(u8 *out, struct lull_entry *entries, size_t n, u64 off, u32 seq)
{
	size_t bytes = index_block_bytes(n);
	u8 *trailer = out + bytes;
	struct lull_block_head head = { .head_bytes = LULL_BLOCK_HEAD_BYTES,
					.kind = LULL_BLOCK_INDEX,
					.n_rows = (u32)n,
					.size_bytes = (u32)bytes,
					.seq = seq };

	if (n)
		lull_sort(entries, n, sizeof(*entries), lull_file_compare_entries);
	lull_block_put_head(out, &head, NULL);
	for (size_t i = 0; i < n; i++)
		lull_file_put_entry(out + LULL_BLOCK_HEAD_BYTES + i * LULL_INDEX_ENTRY_BYTES,
				    &entries[i]);
	memset(trailer, 0, LULL_TRAILER_BYTES);
	memcpy(trailer, TRAILER_MAGIC, 8);
	lull_put_u64(trailer + 8, off);
	lull_put_u64(trailer + 16, bytes);
	lull_put_u64(trailer + 24, n);
	lull_put_u64(trailer + 32, off + bytes + LULL_TRAILER_BYTES);
	lull_put_u32(trailer + 40, lull_crc32c(0, out, bytes));
	lull_put_u16(trailer + 44, LULL_FORMAT);
	lull_put_u32(trailer + CRC_OFF, lull_crc32c(0, trailer, CRC_OFF));
}

bool lull_file_get_trailer(const u8 at[LULL_TRAILER_BYTES], u64 file_bytes, struct lull_trailer *t)
{
	if (memcmp(at, TRAILER_MAGIC, 8) != 0 ||
	    lull_get_u32(at + CRC_OFF) != lull_crc32c(0, at, CRC_OFF))
		return false;
	t->index_off = lull_get_u64(at + 8);
	t->index_bytes = lull_get_u64(at + 16);
	t->n_blocks = lull_get_u64(at + 24);
	t->index_crc = lull_get_u32(at + 40);
	if (lull_get_u64(at + 32) != file_bytes ||
	    file_bytes < LULL_HEADER_BYTES + LULL_TRAILER_BYTES)
		return false;
	if (t->index_off > file_bytes - LULL_TRAILER_BYTES ||
	    t->index_bytes != file_bytes - LULL_TRAILER_BYTES - t->index_off)
		return false;
	/* The second comparison keeps the first from wrapping. */
	return t->n_blocks <= file_bytes / LULL_INDEX_ENTRY_BYTES &&
	       t->index_bytes == index_block_bytes(t->n_blocks);
}

bool lull_file_index_is_whole(const u8 *at, const struct lull_trailer *t)
{
	struct lull_block_head head;

	if (lull_crc32c(0, at, t->index_bytes) != t->index_crc)
		return false;
	return lull_block_get_head(at, t->index_bytes, &head) && head.kind == LULL_BLOCK_INDEX &&
	       head.n_rows == t->n_blocks && head.size_bytes == t->index_bytes;
}
