/*
 * block - the unit of a report: a head, a directory of columns, and their bytes.
 *
 *	head 64 B | column entry 48 B each | columns | zeros up to a multiple of 64
 *
 *	head   0  4      "LULB"
 *	       4  2      head_bytes = 64 + 48 * n_cols
 *	       6  1      kind (enum lull_block_kind)
 *	       7  1      flags (LULL_BLOCK_*)
 *	       8  2      table id
 *	      10  2      n_cols
 *	      12  4      n_rows
 *	      16  4      bytes of the whole block
 *	      20  4      sequence number, +1 per block
 *	      24  8+8+8  smallest start, largest end, largest start
 *	                 (keyed rows: smallest, largest, largest id)
 *	      48  8      lanes: OR of 1 << (lane mod 64)
 *	      56  4      facts: number of lane runs; texts and keyed rows: first id
 *	      60  4      CRC32C of bytes 0-59 and the directory
 *
 *	entry  0  2      column id
 *	       2  1      type (enum lull_col_type)
 *	       3  1      predictor (enum lull_encoding)
 *	       4  2      quantum
 *	       6  1      planes
 *	       7  1      flags (LULL_COL_*)
 *	       8  4+4    offset in the block, bytes
 *	      16  8      first (codec.h)
 *	      24  8+8    smallest, largest value
 *	      40  4      CRC32C of the column's bytes
 *	      44  4      0
 *
 * What it gives:  the bytes of a head from a struct and back; access to columns that was checked.
 * What it checks: magic, CRC, limits, every offset and length against the block. Values such as
 *                 times and lane masks are only as true as the file: they choose what to read,
 *                 never how.
 * Ownership:      a view borrows the bytes it was opened on.
 */
#ifndef LULL_TRACE_BLOCK_H
#define LULL_TRACE_BLOCK_H

#include "base/err.h"
#include "base/types.h"
#include "trace/codec.h"

#define LULL_BLOCK_ALIGN      64u
#define LULL_BLOCK_HEAD_BYTES 64u
#define LULL_BLOCK_COL_BYTES  48u
#define LULL_MAX_COLS	      256u
#define LULL_MAX_HEAD_BYTES   (LULL_BLOCK_HEAD_BYTES + LULL_MAX_COLS * LULL_BLOCK_COL_BYTES)
#define LULL_MAX_TEXT_BYTES   (16u << 20) /* texts of one block together */

enum lull_block_kind {
	LULL_BLOCK_ROWS = 1,
	LULL_BLOCK_STRINGS = 2,
	LULL_BLOCK_KEYED = 3,  /* rows with an id; the last one wins */
	LULL_BLOCK_SCHEMA = 4, /* texts, one line of the schema each */
	LULL_BLOCK_LOD = 5,
	LULL_BLOCK_INDEX = 6,
};

#define LULL_BLOCK_TALL	     1u	  /* holds only rows longer than LULL_TALL_NS */
#define LULL_BLOCK_MUST_KNOW 128u /* a reader that does not know this kind must refuse the file */

/* A row longer than this goes into a block of its own kind, or it would stretch the time bounds of
 * 65,535 others: ten such rows in 5 M made a short window touch 1.8 blocks instead of 1.0. */
#define LULL_TALL_NS 100000000ULL

/* Column ids that no schema uses. */
#define LULL_COL_ID	 0u	 /* keyed rows: the row's id */
#define LULL_COL_LENGTHS 1u	 /* texts: length of each */
#define LULL_COL_TEXT	 2u	 /* texts: their bytes, one after the other */
#define LULL_COL_RUNS	 0x8000u /* + id of the lane column: length of each run */

#define LULL_COL_ZIGZAG 1u
#define LULL_COL_ZONE	4u /* smallest and largest value are valid */

enum lull_col_type {
	LULL_TYPE_U8 = 1,
	LULL_TYPE_U16 = 2,
	LULL_TYPE_U32 = 3,
	LULL_TYPE_U64 = 4,
	LULL_TYPE_I64 = 5,
	LULL_TYPE_F64 = 6,
	LULL_TYPE_REF = 7,  /* string or row id, 4 bytes */
	LULL_TYPE_TEXT = 8, /* bytes of lull_codec_pack() */
};

struct lull_block_head {
	u16 head_bytes;
	u8 kind;
	u8 flags;
	u16 table_id;
	u16 n_cols;
	u32 n_rows;
	u32 size_bytes;
	u32 seq;
	u64 min_start;
	u64 max_end;
	u64 max_start;
	u64 lanes;
	u32 extra; /* number of lane runs, or first id */
};

struct lull_block_col {
	u16 id;
	u8 type;
	struct lull_form form;
	bool has_zone;
	u32 off;
	u32 size_bytes;
	u32 crc;
};

/* A block with a valid head and directory. */
struct lull_block_view {
	const u8 *at;
	struct lull_block_head head;
};

/* What the entry of a column says its type is. */
enum lull_col_type lull_block_type(const struct lull_col_desc *col);

/* The checksum that belongs into a head whose bytes, directory included, are at `at`. */
u32 lull_block_head_crc(const u8 *at, size_t head_bytes);

/* Write head and directory at `at`, checksum included. h->head_bytes must be set. */
void lull_block_put_head(u8 *at, const struct lull_block_head *h,
			 const struct lull_block_col *cols);

/*
 * Read the head at `at`, which has `len` bytes. False if these bytes are not a head, or if the
 * directory is cut off. Does not check whether the block itself is complete.
 */
bool lull_block_get_head(const u8 *at, size_t len, struct lull_block_head *h);

/*
 * Open the block at `at`, which must be complete; checks that the head is right and the padding
 * zero.
 */
bool lull_block_open(struct lull_block_view *v, const u8 *at, size_t len);

/* Column entry `ix`; false if its bytes do not lie inside the block. */
bool lull_block_col(const struct lull_block_view *v, unsigned ix, struct lull_block_col *col);

/* Find a column by id: 0, LULL_E_NOT_FOUND if it is absent, LULL_E_FORMAT if it lies outside the
 * block. */
int lull_block_find(const struct lull_block_view *v, u16 id, struct lull_block_col *col);

/* True if the bytes of the column match their checksum. */
bool lull_block_col_is_whole(const struct lull_block_view *v, const struct lull_block_col *col);

/* True if every column matches its checksum: what recovery asks of each block. */
bool lull_block_is_whole(const struct lull_block_view *v);

/* `n` rounded up to the alignment of blocks. */
static inline size_t lull_block_round_up(size_t n)
{
	return (n + LULL_BLOCK_ALIGN - 1) & ~(size_t)(LULL_BLOCK_ALIGN - 1);
}

#endif
