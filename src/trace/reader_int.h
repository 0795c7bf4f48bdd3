/*
 * reader_int - what the files of the reader share. Private to trace/reader*.c.
 */
#ifndef LULL_TRACE_READER_INT_H
#define LULL_TRACE_READER_INT_H

#include "base/vec.h"
#include "trace/decode.h"
#include "trace/file_frame.h"
#include "trace/input.h"
#include "trace/reader.h"

/* How many rows a DIM table has, by the index; no row needs to be decoded to know it. */
struct lull_dim_size {
	u16 table_id;
	u32 n;
};

/* Rows of a DIM table, decoded at first use. */
struct lull_dim_rows {
	const struct lull_table_desc *table;
	u8 *rows;
	u32 n;
};

/* A block of strings, decoded at first use. */
struct lull_string_block {
	size_t entry_ix;
	u32 first_id;
	u32 n;
	bool is_loaded; /* or found damaged: then list.n is 0 */
	struct lull_text_list list;
};

struct lull_reader {
	struct lull_input in;
	struct lull_file_info info;
	u16 format;
	bool is_sealed;
	struct lull_vec entries; /* struct lull_entry, sorted */
	u8 *is_damaged;		 /* per entry */
	u64 n_damaged;
	u64 lost_bytes;
	u64 n_dangling;
	char warning[256];
	struct lull_decoder *decoder;
	struct lull_vec dim_sizes; /* struct lull_dim_size */
	struct lull_vec dims;	   /* struct lull_dim_rows * */
	struct lull_vec strings;   /* struct lull_string_block, by first id */
	struct lull_schema schema;
	bool has_schema;
	lull_reader_watcher *watcher; /* may be NULL */
	void *watcher_ctx;
};

/* Find the blocks of the file: by its index, or by walking over it. */
int lull_reader_find_blocks(struct lull_reader *r, struct lull_err *err);

/* Open block `ix` of the entries; false if it is damaged, which is counted once. */
bool lull_reader_open_block(struct lull_reader *r, size_t ix, struct lull_block_view *v);

/* Rows of the largest block of this table: what its columns need room for. */
u32 lull_reader_most_rows(const struct lull_reader *r, u16 table_id);

/* Count block `ix` as damaged. */
void lull_reader_mark_damaged(struct lull_reader *r, size_t ix);

/* Remember that a column could not be decoded. */
void lull_reader_warn(struct lull_reader *r, const struct lull_table_desc *t,
		      const struct lull_col_desc *col);

/* Replace ids in `n` u32 values of this column that point outside their table; columns without ids
 * are left alone. */
void lull_reader_check_ids(struct lull_reader *r, const struct lull_col_desc *col, u32 *ids,
			   size_t n);

/* List strings and sizes of dimensions, once the blocks are known. */
void lull_reader_index_dims(struct lull_reader *r);

/* Free strings, dimensions and schema. */
void lull_reader_release_dims(struct lull_reader *r);

#endif
