/*
 * encode - rows and texts in, the bytes of one block out.
 *
 * What it gives:  facts sorted into lane order (row_sort.h), columns cut out of the row structs,
 *                 each through the codec, head and directory around them. Pure: no file, no state
 *                 between two blocks.
 * Ownership:      the block lies in the encoder's buffer and is valid until the next call.
 * Memory:         about 8 MB of scratch, plus the largest block.
 * Threads:        one thread per encoder.
 */
#ifndef LULL_TRACE_ENCODE_H
#define LULL_TRACE_ENCODE_H

#include "base/types.h"
#include "trace/block.h"
#include "trace/tables.h"

struct lull_encoder;

/* A finished block: head.size_bytes bytes at `at`. */
struct lull_encoded {
	const u8 *at;
	struct lull_block_head head;
};

/* An encoder. Free with lull_encoder_free(). */
struct lull_encoder *lull_encoder_new(void);

/* Free it. Accepts NULL. */
void lull_encoder_free(struct lull_encoder *e);

/* A block of `n` rows (1 .. LULL_MAX_ROWS) of a FACT table; `rows` are its row structs in any
 * order. */
struct lull_encoded lull_encode_facts(struct lull_encoder *e, const struct lull_table_desc *table,
				      const void *rows, size_t n, u8 flags, u32 seq);

/* A block of `n` rows of a DIM table: those whose ids, rising, are in ids[]; row id 1 is rows[0].
 */
struct lull_encoded lull_encode_dims(struct lull_encoder *e, const struct lull_table_desc *table,
				     const void *rows, const u32 *ids, size_t n, u32 seq);

/* Texts of one block. */
struct lull_texts {
	const u32 *lens;
	const u8 *bytes; /* one after the other; LULL_MAX_TEXT_BYTES at most */
	size_t n;	 /* 1 .. LULL_MAX_ROWS */
	u32 first_id;
};

/* A block of texts: STRINGS or SCHEMA. */
struct lull_encoded lull_encode_texts(struct lull_encoder *e, enum lull_block_kind kind,
				      const struct lull_texts *texts, u32 seq);

#endif
