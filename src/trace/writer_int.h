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

/* Names with numbers in them would make a table without end; past this they are "(other)". */
#define LULL_MAX_NAMES	     1000001u /* 1 M texts, and "(other)" */
#define LULL_MAX_NAMES_BYTES (64u << 20)
#define LULL_N_TABLE_IDS     64u /* table ids are below this; writer.c proves it */

/* Rows that are not written yet. */
struct lull_rows {
	u8 *at;
	u32 n;
	u32 cap;
};

struct lull_reader;

struct lull_facts {
	const struct lull_table_desc *desc; /* NULL if there is no such table */
	u32 dur_off;			    /* of dur_ns in the row, 0 if it has none */
	struct lull_rows flat;
	struct lull_rows tall; /* longer than LULL_TALL_NS */
};

struct lull_dims {
	const struct lull_table_desc *desc;
	struct lull_rows rows; /* all of them */
	u8 *is_dirty;	       /* per row: not written, or changed since */
	u32 n_dirty;
	u32 first_dirty; /* no row before this index is dirty */
};

struct lull_names {
	struct lull_map ids;   /* hash of the text to its id */
	u32 n;		       /* ids given */
	u64 n_bytes;	       /* of all texts */
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

/*
 * A writer that goes on with `part`, which becomes its own, and with the strings and dimensions of
 * `r`. The reader must know no block that is not in the part.
 */
struct lull_writer *lull_writer_adopt(const struct lull_part *part, struct lull_reader *r);

/* Write names and dimensions that are not in the file yet, or have changed. */
int lull_writer_pending(struct lull_writer *w, struct lull_err *err);

/* Free it; the file must be closed. */
void lull_writer_free(struct lull_writer *w);

#endif
