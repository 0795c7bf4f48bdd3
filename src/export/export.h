/*
 * export - a report in the format of another program.
 *
 * What it gives:  the list of formats, and rows of any table, known to this version or not, one by
 *                 one: what formats that hold everything are made of.
 * Memory:         rows are streamed; only the dimensions are held.
 *
 * To add one:     export_NAME.c with `const struct lull_export lull_export_NAME` at its end,
 *                 the line EXPORT(NAME) in exports.def,
 *                 a class in test/e2e/test_export.py that reads the result with another program,
 *                 its name in doc/lull-export.1.md.
 */
#ifndef LULL_EXPORT_EXPORT_H
#define LULL_EXPORT_EXPORT_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/block.h"
#include "trace/reader.h"

struct lull_export_options {
	struct lull_vec tables; /* char *: names of the tables wanted; empty = all */
	u64 from_ns;		/* only what lies in this time, edges included */
	u64 to_ns;		/* 0: to the end */
	bool is_plain;		/* not compressed; only for formats that are otherwise */
	const char *name;	/* of the report, for formats that show it; may be NULL */
	u64 max_bytes;		/* html: of the file; 0: 5 MiB */
	const char *source_dir; /* html: embed the source found there; may be NULL */
	u64 thin;		/* lull: every so manyth sample stays; 0 and 1: all */
	bool is_env_discarded;	/* lull: leave environment variables out */
};

/*
 * One format. One of write() and write_path() is there. With both, write() is for a single table
 * and for streams, write_path() for several tables.
 */
struct lull_export {
	const char *name;
	const char *suffix; /* of the file, such as ".jsonl"; folders end in "-NAME" */
	const char *summary;
	/* Write the report; LULL_E_IO if the stream fails. */
	int (*write)(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
		     struct lull_err *err);
	/*
	 * For formats that cannot be streamed: create the file or folder `path`, which is not there
	 * yet. What is left of it after a failure is removed by the caller.
	 */
	int (*write_path)(struct lull_reader *r, const struct lull_export_options *options,
			  const char *path, struct lull_err *err);
	const char *member_suffix; /* write_path() makes a folder of files that end in this */
};

/* All formats, NULL at the end. */
extern const struct lull_export *const lull_exports[];

/* The format with this name, or NULL. */
const struct lull_export *lull_export_find(const char *name);

/*
 * The same, and formats of nsys by their names there; LULL_E_USAGE, with what to use instead, for
 * what is not there.
 */
int lull_export_choose(const char *name, const struct lull_export **format, struct lull_err *err);

/* Where a report is exported to. */
struct lull_export_target {
	const char *path; /* "-": standard output, for formats that can be streamed */
	bool is_overwriting;
};

/* Write the report there. A file or folder appears under its name when it is whole. */
int lull_export_write(struct lull_reader *r, const struct lull_export *format,
		      const struct lull_export_options *options,
		      const struct lull_export_target *target, struct lull_err *err);

/* True if the format makes a folder with a file for each table. */
bool lull_export_makes_folder(const struct lull_export *format,
			      const struct lull_export_options *options);

/* The time that is asked for. */
struct lull_span lull_export_window(const struct lull_export_options *options);

/* One row of any table. */
struct lull_export_row {
	const struct lull_table_desc *table;
	u32 id;				 /* of a dimension row; 0 for facts */
	const u8 *values[LULL_MAX_COLS]; /* where the value of each column lies */
};

/* Told each row; what it points to is valid during the call. */
typedef void lull_export_row_fn(void *ctx, struct lull_reader *r,
				const struct lull_export_row *row);

/* Call `fn` for each row of a table of lull_reader_schema() that lies in `window`. */
void lull_export_rows(struct lull_reader *r, const struct lull_table_desc *table,
		      struct lull_span window, lull_export_row_fn *fn, void *ctx);

/*
 * The fact rows of a block that lie in the window: their numbers go to `rows`, which has room for
 * all `n`. Returns how many. `cols` are all columns of the table.
 */
size_t lull_export_select(const struct lull_table_desc *table, const void *const *cols, size_t n,
			  struct lull_span window, u32 *rows);

/* True if the column holds string ids. */
bool lull_export_is_text(const struct lull_col_desc *col);

/* True if the options want this table. */
bool lull_export_wants(const struct lull_export_options *options, const char *table);

/* True if this table belongs into the export: it is wanted, and has rows or was named. */
bool lull_export_holds(const struct lull_reader *r, const struct lull_table_desc *table,
		       const struct lull_export_options *options);

/* LULL_E_NOT_FOUND if the options name a table that the report does not know. */
int lull_export_check_tables(struct lull_reader *r, const struct lull_export_options *options,
			     struct lull_err *err);

/*
 * Create the file of a table in a folder. The name of a table comes from the file, so one that is
 * more than letters, digits and _ is LULL_E_FORMAT.
 */
int lull_export_member(const char *folder, const char *table, const char *suffix, FILE **to,
		       struct lull_err *err);

/* What a format's write() returns at its end: LULL_E_IO if something did not reach the stream. */
int lull_export_finish(FILE *to, struct lull_err *err);

#endif
