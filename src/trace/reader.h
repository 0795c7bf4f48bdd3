/*
 * reader - open a report and give its columns.
 *
 * What it gives:  blocks of decoded columns, dimension tables as arrays of row structs, strings.
 * What it checks: magic, version, every offset and length against the file, checksums, ids against
 *                 their tables. A damaged block makes its rows absent and is counted; it never
 *                 crashes.
 * Unsealed files: `.part` files and cut ones are read up to the last whole block
 *                 (lull_reader_is_sealed()).
 * Other versions: tables and columns that this version does not know are skipped by the typed
 *                 functions and reachable by the generic ones, with the schema that the file
 *                 carries. A column that uses an encoding of a later version reads as zeros;
 *                 lull_reader_warning() names it.
 * Ownership:      the reader owns the mapping, the dimensions and the strings; they live until
 *                 close.
 * Threads:        one at a time.
 * Cost:           open of a sealed file is O(index); dimensions and strings are decoded at first
 *                 use.
 */
#ifndef LULL_TRACE_READER_H
#define LULL_TRACE_READER_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "trace/schema.h"
#include "trace/tables.h"
#include "trace/writer.h"

struct lull_reader;
struct lull_entry; /* trace/file_frame.h */

/* Open a report, sealed or not. */
int lull_reader_open(struct lull_reader **r, const char *path, struct lull_err *err);

/* Close and free everything that was borrowed from it. Accepts NULL. */
void lull_reader_close(struct lull_reader *r);

/* What the header says. */
const struct lull_file_info *lull_reader_info(const struct lull_reader *r);

/*
 * True if the file ends in a valid index; false for one that was cut off or is still being written.
 */
bool lull_reader_is_sealed(const struct lull_reader *r);

/* Version of the format the file was written in: major << 8 | minor. */
u16 lull_reader_format(const struct lull_reader *r);

/*
 * Blocks read so far that had to be skipped because they are damaged, and bytes between blocks that
 * are not blocks.
 */
u64 lull_reader_n_damaged(const struct lull_reader *r);
u64 lull_reader_lost_bytes(const struct lull_reader *r);

/*
 * Append how many blocks were damaged of which tables, such as "2 of 31 blocks (kernel 1, call 1)".
 * False if none was so far.
 */
bool lull_reader_name_damage(const struct lull_reader *r, struct lull_str *to);

/* Row ids read so far that point outside their table; they were replaced by 0. */
u64 lull_reader_n_dangling(const struct lull_reader *r);

/*
 * A sentence naming a column that this version cannot decode, or NULL if there was none so far.
 * Borrowed.
 */
const char *lull_reader_warning(const struct lull_reader *r);

/* Check every checksum of the file now; returns lull_reader_n_damaged(). */
u64 lull_reader_verify(struct lull_reader *r);

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

/* Totals of a table, known or not; all 0 if the file has none. */
struct lull_table_stats lull_reader_stats(const struct lull_reader *r, u16 table_id);

/*
 * Text of a string id, never NULL: "" for 0, "?" for one that is not in the file. *len may be NULL.
 */
const char *lull_reader_string(struct lull_reader *r, u32 id, size_t *len);

/* What the table meta has for this key, such as "cpu.count"; "" if it is not there. */
const char *lull_reader_fact(struct lull_reader *r, const char *key);

/* Strings of the report by the index alone: their ids are 1 to this number. */
u32 lull_reader_n_strings(const struct lull_reader *r);

/*
 * All rows of a DIM table as an array of its row struct: element 0 is row id 1. *n receives the
 * count. Ids in it that point into other tables are valid or 0; a row's reference to its own table
 * is a smaller id, so that following it ends.
 */
const void *lull_reader_dim(struct lull_reader *r, enum lull_table table, size_t *n);

/* Rows of a DIM table, known or not, by the index alone. */
u32 lull_reader_n_dim(const struct lull_reader *r, u16 table_id);

/*
 * The schema that the file carries: also of tables and columns this version does not know. The one
 * of this version if that block is damaged.
 */
const struct lull_schema *lull_reader_schema(struct lull_reader *r);

/*
 * Like lull_reader_dim() for any descriptor, such as one of lull_reader_schema(), which must live
 * as long as the reader: rows of table->row_bytes each.
 */
const void *lull_reader_dim_rows(struct lull_reader *r, const struct lull_table_desc *table,
				 size_t *n);

/* All blocks as the index has them, sorted by table, then start; *n receives the count. */
const struct lull_entry *lull_reader_blocks(const struct lull_reader *r, size_t *n);

/* True if this block (an index into lull_reader_blocks()) was read and found damaged. */
bool lull_reader_is_damaged(const struct lull_reader *r, size_t block_ix);

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
 * Rows of a block come clustered by lane, by start inside a lane; some may lie outside the window.
 * A column that the file does not have reads as zeros. All columns are decoded unless
 * lull_cursor_want() names some; they are valid until the next call.
 */
struct lull_cursor {
	struct lull_reader *reader;
	const struct lull_table_desc *table;
	u64 from_ns;
	u64 to_ns;
	size_t next_ix;	 /* private: next index entry to look at */
	void *buffer;	 /* private: decoded columns */
	u32 max_rows;	 /* private: what the buffer has room for */
	u64 n_passed;	 /* private: rows of the blocks before the current one */
	u64 n_rows;	 /* private: of the table, if there is a watcher */
	bool *is_wanted; /* private: per column, NULL = all */
};

/*
 * Told how far a cursor is: n_passed of the n_rows of its table, 0 when it begins. For progress;
 * called once for each block.
 */
typedef void lull_reader_watcher(void *ctx, const struct lull_table_desc *table, u64 n_passed,
				 u64 n_rows);

/* Let `watcher` know how far cursors of this reader are; NULL for no watcher. */
void lull_reader_watch(struct lull_reader *r, lull_reader_watcher *watcher, void *ctx);

/* Begin to walk. Nothing is read yet. */
void lull_cursor_init(struct lull_cursor *c, struct lull_reader *r, enum lull_table table,
		      u64 from_ns, u64 to_ns);

/* The same for any descriptor of a FACT table, such as one of lull_reader_schema(). */
void lull_cursor_init_table(struct lull_cursor *c, struct lull_reader *r,
			    const struct lull_table_desc *table, u64 from_ns, u64 to_ns);

/*
 * Decode this column; called before the first lull_cursor_next(). Columns that were not named are
 * NULL. That no row ends after UINT64_MAX is known only of rows whose start is decoded.
 */
void lull_cursor_want(struct lull_cursor *c, const char *column);

/*
 * Decode the next block; `cols` is the table's struct lull_X_cols, or an array of n_cols pointers.
 * Returns the number of rows, 0 at the end.
 */
size_t lull_cursor_next(struct lull_cursor *c, void *cols);

/*
 * Decode one block of the cursor's table, whatever its window: `block_ix` is an index into
 * lull_reader_blocks(). Returns the number of rows, 0 if it is damaged. For readers that choose
 * their blocks themselves.
 */
size_t lull_cursor_read(struct lull_cursor *c, size_t block_ix, void *cols);

/* Free what the cursor holds. */
void lull_cursor_release(struct lull_cursor *c);

#endif
