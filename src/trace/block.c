#include "trace/block.h"

#include <string.h>

#include "base/bytes.h"
#include "trace/crc.h"

#define MAGIC	"LULB"
#define CRC_OFF 60u

enum lull_col_type lull_block_type(const struct lull_col_desc *col)
{
	if (col->is_signed)
		return LULL_TYPE_I64;
	if (col->is_float)
		return LULL_TYPE_F64;
	switch (col->size_bytes) {
	case 1:
		return LULL_TYPE_U8;
	case 2:
		return LULL_TYPE_U16;
	case 4:
		return strcmp(col->type, "u32") == 0 ? LULL_TYPE_U32 : LULL_TYPE_REF;
	default:
		return LULL_TYPE_U64;
	}
}

u32 lull_block_head_crc(const u8 *at, size_t head_bytes)
{
	u32 crc = lull_crc32c(0, at, CRC_OFF);

	return lull_crc32c(crc, at + LULL_BLOCK_HEAD_BYTES, head_bytes - LULL_BLOCK_HEAD_BYTES);
}

static void put_col(u8 *at, const struct lull_block_col *c)
{
	memset(at, 0, LULL_BLOCK_COL_BYTES);
	lull_put_u16(at, c->id);
	at[2] = c->type;
	at[3] = c->form.predictor;
	lull_put_u16(at + 4, c->form.quantum);
	at[6] = c->form.n_planes;
	at[7] = (u8)((c->form.is_zigzag ? LULL_COL_ZIGZAG : 0) | (c->has_zone ? LULL_COL_ZONE : 0));
	lull_put_u32(at + 8, c->off);
	lull_put_u32(at + 12, c->size_bytes);
	lull_put_u64(at + 16, c->form.first);
	lull_put_u64(at + 24, c->has_zone ? c->form.min : 0);
	lull_put_u64(at + 32, c->has_zone ? c->form.max : 0);
	lull_put_u32(at + 40, c->crc);
}

void lull_block_put_head(u8 *at, const struct lull_block_head *h, const struct lull_block_col *cols)
{
	memcpy(at, MAGIC, 4);
	lull_put_u16(at + 4, h->head_bytes);
	at[6] = h->kind;
	at[7] = h->flags;
	lull_put_u16(at + 8, h->table_id);
	lull_put_u16(at + 10, h->n_cols);
	lull_put_u32(at + 12, h->n_rows);
	lull_put_u32(at + 16, h->size_bytes);
	lull_put_u32(at + 20, h->seq);
	lull_put_u64(at + 24, h->min_start);
	lull_put_u64(at + 32, h->max_end);
	lull_put_u64(at + 40, h->max_start);
	lull_put_u64(at + 48, h->lanes);
	lull_put_u32(at + 56, h->extra);
	for (unsigned c = 0; c < h->n_cols; c++)
		put_col(at + LULL_BLOCK_HEAD_BYTES + c * LULL_BLOCK_COL_BYTES, &cols[c]);
	lull_put_u32(at + CRC_OFF, lull_block_head_crc(at, h->head_bytes));
}

static bool is_sane(const struct lull_block_head *h)
{
	if (h->n_cols > LULL_MAX_COLS ||
	    h->head_bytes != LULL_BLOCK_HEAD_BYTES + h->n_cols * LULL_BLOCK_COL_BYTES)
		return false;
	if (h->size_bytes < h->head_bytes || h->size_bytes % LULL_BLOCK_ALIGN)
		return false;
	if (h->kind == LULL_BLOCK_INDEX)
		return true;
	return h->n_rows <= LULL_MAX_ROWS;
}

bool lull_block_get_head(const u8 *at, size_t len, struct lull_block_head *h)
{
	if (len < LULL_BLOCK_HEAD_BYTES || memcmp(at, MAGIC, 4) != 0)
		return false;
	h->head_bytes = lull_get_u16(at + 4);
	h->kind = at[6];
	h->flags = at[7];
	h->table_id = lull_get_u16(at + 8);
	h->n_cols = lull_get_u16(at + 10);
	h->n_rows = lull_get_u32(at + 12);
	h->size_bytes = lull_get_u32(at + 16);
	h->seq = lull_get_u32(at + 20);
	h->min_start = lull_get_u64(at + 24);
	h->max_end = lull_get_u64(at + 32);
	h->max_start = lull_get_u64(at + 40);
	h->lanes = lull_get_u64(at + 48);
	h->extra = lull_get_u32(at + 56);
	if (!is_sane(h) || h->head_bytes > len)
		return false;
	return lull_get_u32(at + CRC_OFF) == lull_block_head_crc(at, h->head_bytes);
}

/* The columns lie one after the other, so all bytes after the last one are padding. */
static bool is_padding_zero(const struct lull_block_view *v)
{
	u32 end = v->head.head_bytes;
	struct lull_block_col col;

	for (unsigned c = 0; c < v->head.n_cols; c++)
		if (lull_block_col(v, c, &col) && col.off + col.size_bytes > end)
			end = col.off + col.size_bytes;
	for (; end < v->head.size_bytes; end++)
		if (v->at[end])
			return false;
	return true;
}

bool lull_block_open(struct lull_block_view *v, const u8 *at, size_t len)
{
	v->at = at;
	if (!lull_block_get_head(at, len, &v->head) || v->head.size_bytes > len)
		return false;
	return v->head.kind == LULL_BLOCK_INDEX || is_padding_zero(v);
}

bool lull_block_col(const struct lull_block_view *v, unsigned ix, struct lull_block_col *col)
{
	const u8 *at = v->at + LULL_BLOCK_HEAD_BYTES + ix * LULL_BLOCK_COL_BYTES;

	col->id = lull_get_u16(at);
	col->type = at[2];
	col->form.predictor = at[3];
	col->form.quantum = lull_get_u16(at + 4);
	col->form.n_planes = at[6];
	col->form.is_zigzag = at[7] & LULL_COL_ZIGZAG;
	col->has_zone = at[7] & LULL_COL_ZONE;
	col->off = lull_get_u32(at + 8);
	col->size_bytes = lull_get_u32(at + 12);
	col->form.first = lull_get_u64(at + 16);
	col->form.min = lull_get_u64(at + 24);
	col->form.max = lull_get_u64(at + 32);
	col->crc = lull_get_u32(at + 40);
	return col->off >= v->head.head_bytes && col->off <= v->head.size_bytes &&
	       col->size_bytes <= v->head.size_bytes - col->off;
}

int lull_block_find(const struct lull_block_view *v, u16 id, struct lull_block_col *col)
{
	for (unsigned c = 0; c < v->head.n_cols; c++)
		if (lull_get_u16(v->at + LULL_BLOCK_HEAD_BYTES + c * LULL_BLOCK_COL_BYTES) == id)
			return lull_block_col(v, c, col) ? 0 : LULL_E_FORMAT;
	return LULL_E_NOT_FOUND;
}

bool lull_block_col_is_whole(const struct lull_block_view *v, const struct lull_block_col *col)
{
	return lull_crc32c(0, v->at + col->off, col->size_bytes) == col->crc;
}

bool lull_block_is_whole(const struct lull_block_view *v)
{
	struct lull_block_col col;

	for (unsigned c = 0; c < v->head.n_cols; c++)
		if (!lull_block_col(v, c, &col) || !lull_block_col_is_whole(v, &col))
			return false;
	return true;
}
