/*
 * decode - the bytes of one block in, columns or texts out.
 *
 * What it checks: checksums, lengths, types, lane runs that add up, ends of rows that do not wrap.
 *                 Row ids are checked by the reader, which knows the tables they point into.
 * Results:        0; LULL_E_FORMAT: the block is damaged, its rows are absent;
 *                 LULL_E_UNSUPPORTED: its start cannot be decoded by this version. Any other
 *                 column of a later version reads as zeros and is named.
 * Threads:        one thread per decoder.
 */
#ifndef LULL_TRACE_DECODE_H
#define LULL_TRACE_DECODE_H

#include "base/types.h"
#include "trace/block.h"
#include "trace/tables.h"

struct lull_decoder;

/* What to decode, and where to. */
struct lull_decode_job {
	const struct lull_table_desc *table;
	void *const *cols;     /* per column of the table: room for n_rows values */
	const bool *is_wanted; /* per column; NULL = all. Columns that are not wanted may be decoded
				  or not */
	u32 *ids;	       /* keyed rows: room for n_rows ids; else NULL */
	const struct lull_col_desc
		*unreadable; /* out: a column this version cannot decode, or NULL */
};

/* Texts of a block: text i is at bytes + offs[i], with a NUL after it, and offs[i + 1] - offs[i] -
 * 1 long. */
struct lull_text_list {
	char *bytes;
	u32 *offs; /* n + 1 */
	size_t n;
};

/* A decoder. Free with lull_decoder_free(). */
struct lull_decoder *lull_decoder_new(void);

/* Free it. Accepts NULL. */
void lull_decoder_free(struct lull_decoder *d);

/* Decode the columns of a block of facts or keyed rows. */
int lull_decode_rows(struct lull_decoder *d, const struct lull_block_view *v,
		     struct lull_decode_job *job);

/* Decode a block of texts; free with lull_text_list_release(). */
int lull_decode_texts(struct lull_decoder *d, const struct lull_block_view *v,
		      struct lull_text_list *list);

/* Free the texts; the list is empty afterwards. */
void lull_text_list_release(struct lull_text_list *list);

#endif
