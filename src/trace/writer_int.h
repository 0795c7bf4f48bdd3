/*
 * writer_int - what the files of the writer share. Private to trace/writer*.c.
 */
#ifndef LULL_TRACE_WRITER_INT_H
#define LULL_TRACE_WRITER_INT_H

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/encode.h"
#include "trace/part.h"
#include "trace/writer.h"

#define LULL_N_TABLE_IDS 64u /* table ids are below this; writer.c proves it */

/* Rows that are not written yet. */
struct lull_rows {
	u8 *at;
	u32 n;
	u32 cap;
};

struct lull_facts {
	const struct lull_table_desc *desc; /* NULL if there is no such table */
	u32 dur_off;                        /* of dur_ns in the row, 0 if it has none */
	struct lull_rows flat;
	struct lull_rows tall; /* longer than LULL_TALL_NS */
};

struct lull_dims {
	const struct lull_table_desc *desc;
	struct lull_rows rows; /* all of them */
	u8 *is_dirty;          /* per row: not written, or changed since */
	u32 n_dirty;
	u32 first_dirty; /* no row before this index is dirty */
};

struct lull_names {
	struct lull_map ids;   /* hash of the text to its id */
	u32 n;                 /* ids given */
	u64 n_bytes;           /* of all texts */
	u32 other_id;          /* of "(other)", 0 until it is needed */
	struct lull_vec lens;  /* u32: texts that are not written yet */
	struct lull_str bytes; /* of these */
};

struct lull_writer {
	struct lull_part part;
	struct lull_encoder *encoder;
	struct lull_facts facts[LULL_N_TABLE_IDS];
	struct lull_dims dims[LULL_N_TABLE_IDS];
	struct lull_names names;
	u32 *ids; /* LULL_MAX_ROWS, scratch of dimension blocks */
	struct lull_writer_stats stats;
	struct lull_err error; /* the last failure; code 0 if there was none */
};

/* A writer without a file. */
struct lull_writer *lull_writer_new(void);

/* Free it; the file must be closed. */
void lull_writer_free(struct lull_writer *w);

#endif
