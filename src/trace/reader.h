/*
 * reader - open a report and give its columns.
 *
 * What it gives:  blocks of decoded columns, dimension tables as arrays of row structs, strings.
 * What it checks: magic, version, every offset and length against the file, checksums, ids against their
 *                 tables. A damaged block makes its rows absent and is counted; it never crashes.
 * Unsealed files: `.part` files and cut ones are read up to the last whole block (lull_reader_is_sealed()).
 * Ownership:      the reader owns the mapping, the dimensions and the strings; they live until close.
 * Threads:        one at a time.
 * Cost:           open of a sealed file is O(index); dimensions and strings are decoded at first use.
 */
#ifndef LULL_TRACE_READER_H
#define LULL_TRACE_READER_H

#include "base/err.h"
#include "base/types.h"
#include "trace/tables.h"
#include "trace/writer.h"

struct lull_reader;

/* Open a report, sealed or not. */
int lull_reader_open(struct lull_reader **r, const char *path, struct lull_err *err);

/* Close and free everything that was borrowed from it. Accepts NULL. */
void lull_reader_close(struct lull_reader *r);

/* What the header says. */
const struct lull_file_info *lull_reader_info(const struct lull_reader *r);

/* True if the file ends in a valid index; false for one that was cut off or is still being written. */
bool lull_reader_is_sealed(const struct lull_reader *r);

/* Blocks that had to be skipped because they are damaged, and bytes between blocks that are not blocks. */
u64 lull_reader_n_damaged(const struct lull_reader *r);
u64 lull_reader_lost_bytes(const struct lull_reader *r);

/* Length of the file. */
u64 lull_reader_size_bytes(const struct lull_reader *r);

/* Per table, from the index alone. Time bounds are 0 for an empty table. */
struct lull_table_stats {
	u64 n_rows;
	u64 size_bytes;
	u64 n_blocks;
	u64 first_ns;
	u64 last_ns;
};
struct lull_table_stats lull_reader_stats(const struct lull_reader *r, u16 table_id);

/* Text of a string id, never NULL: "" for 0, "?" for one that is not in the file. *len may be NULL. */
const char *lull_reader_string(struct lull_reader *r, u32 id, size_t *len);

/* All rows of a DIM table as an array of its row struct: element 0 is row id 1. *n receives the count. */
const void *lull_reader_dim(struct lull_reader *r, enum lull_table table, size_t *n);

/*
 * Walk the FACT blocks of a table that may hold rows in [from_ns, to_ns):
 *
 *	struct lull_cursor c;
 *	struct lull_range_cols cols;
 *	lull_cursor_init(&c, reader, LULL_TABLE_range, 0, UINT64_MAX);
 *	while ((n = lull_cursor_next(&c, &cols)) > 0)
 *		for (size_t i = 0; i < n; i++) ... cols.start_ns[i] ...
 *	lull_cursor_release(&c);
 *
 * Rows of a block come clustered by lane, by start inside a lane. A column that the file does not have reads
 * as zeros. All columns of the block are decoded; they are valid until the next call.
 */
struct lull_cursor {
	struct lull_reader *reader;
	const struct lull_table_desc *table;
	u64 from_ns;
	u64 to_ns;
	size_t next_ix;	      /* private: next index entry to look at */
	void *buffer;	      /* private: decoded columns */
	size_t buffer_bytes;  /* private */
};
void lull_cursor_init(struct lull_cursor *c, struct lull_reader *r, enum lull_table table, u64 from_ns,
		      u64 to_ns);
size_t lull_cursor_next(struct lull_cursor *c, void *cols);
void lull_cursor_release(struct lull_cursor *c);

#endif
