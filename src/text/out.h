/*
 * out - rows in, a table out: callers fill rows and never format them.
 *
 *	static const struct lull_out_column columns[] = {
 *		{ .name = "Time", .kind = LULL_OUT_PERCENT },
 *		{ .name = "Total Time", .kind = LULL_OUT_NS },
 *		{ .name = "Name", .kind = LULL_OUT_TEXT },
 *	};
 *	struct lull_out out;
 *	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
 *	lull_out_row(&out);
 *	lull_out_f64(&out, 97.5);
 *	lull_out_i64(&out, 1234567);
 *	lull_out_text(&out, "gemm");
 *	rc = lull_out_write(&out, &options, stdout, err);
 *	lull_out_release(&out);
 *
 * Tables of millions of rows are printed while they are filled, and never kept:
 *
 *	lull_out_stream(&out, &options, open_file, ctx);
 *	...					(rows as above)
 *	rc = lull_out_finish(&out, err);
 *
 * What it gives:  headers with their units, alignment, sorting, --top, units of time, and the
 *                 formats of out_formats.def.
 * Ownership:      texts are copied; columns are borrowed until release.
 * Memory:         16 bytes a cell and the texts; of a stream LULL_OUT_BATCH_ROWS rows.
 * Limits:         cells not filled are empty; more cells than columns is a bug (assert).
 *
 * To add a format: out_X.c with const struct lull_out_format lull_out_format_X, OUT_FORMAT(X) in
 * out_formats.def.
 */
#ifndef LULL_TEXT_OUT_H
#define LULL_TEXT_OUT_H

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

enum lull_out_kind {
	LULL_OUT_TEXT,
	LULL_OUT_INT,	  /* whole number */
	LULL_OUT_ID,	  /* whole number that counts nothing, such as a pid: digits not grouped */
	LULL_OUT_FLOAT,	  /* `decimals` digits after the point */
	LULL_OUT_PERCENT, /* one digit after the point */
	LULL_OUT_NS,	  /* nanoseconds */
	LULL_OUT_BYTES,
	LULL_OUT_NUMBER, /* any number with the digits it has, not grouped */
};

enum lull_out_align {
	LULL_OUT_AUTO = 0, /* text left, numbers right */
	LULL_OUT_LEFT,
	LULL_OUT_RIGHT,
};

struct lull_out_column {
	const char *name; /* without the unit, which the header adds: "Total Time" becomes "Total
			     Time (ns)" */
	enum lull_out_kind kind;
	enum lull_out_align align;
	const char *unit; /* instead of the kind's own, such as "MB/s"; may be NULL */
	int decimals;	  /* digits after the point of FLOAT, and of NS and BYTES given as f64 */
	const char *doc;  /* what it means, for the manual; may be NULL */
	bool is_spare;	  /* column only: left out, and named below, where the width is too small */
	bool is_kernel;	  /* column only: names of kernels, which get short (text/kernel_name.h) */
	bool is_moment;	  /* column only: NS that say when, with digits that tell rows apart */
	bool is_wanted;	  /* column only: never left out: somebody asked for it, or all read it */
};

enum lull_out_format_id {
#define OUT_FORMAT(name) LULL_OUT_FORMAT_##name,
#include "text/out_formats.def"
#undef OUT_FORMAT
};

/* The names of the formats, NULL at the end: the choices of OPT_ENUM for --format. */
extern const char *const lull_out_format_names[];

/* What the columns of kind LULL_OUT_NS are shown in. */
enum lull_out_time {
	LULL_OUT_TIME_NS = 0,
	LULL_OUT_TIME_US,
	LULL_OUT_TIME_MS,
	LULL_OUT_TIME_S,
};

struct lull_out_options {
	int format;		 /* enum lull_out_format_id; 0 is column */
	int sort_ix;		 /* column to sort by, or LULL_OUT_UNSORTED */
	bool is_ascending;	 /* smallest first */
	int kept_ix;		 /* 1 + the column that rows are sorted by already; 0: none */
	u64 top;		 /* rows to print, 0 for all */
	enum lull_out_time time; /* unit of time */
	bool is_human;	    /* column and table only: 1.23 ms instead of 1,234,567 under "(ns)" */
	bool has_no_header; /* leave the header out */
	bool is_never_cut;  /* keep long text and spare columns even on a terminal */
	bool is_ungrouped;  /* column and table only: no commas between digits */
	bool has_escapes;   /* tsv only: a tab becomes \t, not a blank */
	int width;	    /* columns to fit into; 0: the terminal's, and no limit elsewhere */
	const char *title;  /* hdoc only: title of the page; may be NULL */
	const char *css;    /* hdoc only: address of a style sheet; may be NULL */
	const char *widths; /* column and table only: "10:.:0", by column; may be NULL */
};

#define LULL_OUT_UNSORTED (-1)
#define LULL_OUT_OPTIONS_INIT                \
	{                                    \
		.sort_ix = LULL_OUT_UNSORTED \
	}

enum lull_out_cell_kind {
	LULL_OUT_CELL_EMPTY = 0,
	LULL_OUT_CELL_TEXT,
	LULL_OUT_CELL_I64,
	LULL_OUT_CELL_F64,
};

struct lull_out_cell {
	enum lull_out_cell_kind kind;
	u32 text_len; /* bytes of a text */
	union {
		size_t text_off; /* in lull_out.texts */
		i64 i;
		f64 f;
	};
};

/* How many rows of a stream are printed at a time; the first of them set the widths. */
#define LULL_OUT_BATCH_ROWS 1000u

/* Asked where a stream goes when its first row is there, so that an empty one opens nothing. */
typedef int lull_out_open(void *ctx, FILE **to, struct lull_err *err);

struct lull_out_page;

struct lull_out {
	const struct lull_out_column *columns;
	size_t n_columns;
	struct lull_vec cells; /* struct lull_out_cell, n_columns for each row */
	struct lull_str texts; /* of the cells */
	struct lull_str *line; /* private: where cells of a stream are printed at once, or NULL */
	size_t n_filled;       /* cells of the last row */
	size_t n_flushed;      /* rows of a stream that are not kept any more */
	struct lull_out_page *page; /* private: of a stream */
	char separator;		    /* private: of the cells of a line */
	int kept_ix; /* 1 + the column that rows were sorted by, which is never left out; or 0 */
	struct lull_str note; /* what the rows mean together, for people; may be empty */
};

/* An empty table of these columns. */
void lull_out_init(struct lull_out *out, const struct lull_out_column *columns, size_t n_columns);

/* Leave the last `n` columns out; before the first row. */
void lull_out_drop_last(struct lull_out *out, size_t n);

/* Free the rows; the table is empty afterwards. */
void lull_out_release(struct lull_out *out);

/* Begin a row. */
void lull_out_row(struct lull_out *out);

/* Fill the next cell of the row with a copy of the text; NULL leaves it empty. */
void lull_out_text(struct lull_out *out, const char *text);

/* The same for `len` bytes. */
void lull_out_bytes(struct lull_out *out, const char *text, size_t len);

/*
 * Fill the next cell with a text that is made piece by piece: append to what this returns, then
 * call lull_out_text_end(). Nothing else may be filled in between.
 */
struct lull_str *lull_out_text_begin(struct lull_out *out);

/* The text of the cell is complete. */
void lull_out_text_end(struct lull_out *out);

/* Fill the next cell with a whole number. */
void lull_out_i64(struct lull_out *out, i64 value);

/* Fill the next cell with a number that may have decimals; NaN and infinity leave it empty. */
void lull_out_f64(struct lull_out *out, f64 value);

/* Leave the next cell empty. */
void lull_out_skip(struct lull_out *out);

/*
 * Cells that follow each other and are the same for each row of a key, such as the id of a name:
 *
 *	if (!lull_out_recall(&out, &memo, key)) {
 *		...				(fill the cells)
 *		lull_out_remember(&out, &memo, key);
 *	}
 *
 * Where rows are printed as they come, the cells of a key are formatted once. A memo belongs to one
 * place in the row. Keys are small numbers; large ones are not remembered.
 */
struct lull_out_memo {
	struct lull_vec parts; /* private: by key */
	struct lull_str bytes; /* private: what the parts printed */
	size_t from_off;       /* private: where the cells to remember begin in the line */
	size_t n_filled;       /* private: cells of the row in front of them */
};

/* A memo that remembers nothing yet. */
void lull_out_memo_init(struct lull_out_memo *memo);

/* Free it. */
void lull_out_memo_release(struct lull_out_memo *memo);

/* Fill the cells of `key` as they were remembered; false if they are to be filled by hand. */
bool lull_out_recall(struct lull_out *out, struct lull_out_memo *memo, u64 key);

/* The cells that were filled since lull_out_recall() are those of `key`. */
void lull_out_remember(struct lull_out *out, struct lull_out_memo *memo, u64 key);

/* The text of a cell that has one. */
const char *lull_out_cell_text(const struct lull_out *out, const struct lull_out_cell *cell);

/* Rows so far. */
size_t lull_out_len(const struct lull_out *out);

/* The ix of the column with this name (case does not matter), or -1: for --sort. */
int lull_out_find(const struct lull_out *out, const char *name);

/* Append the header of a column as formats for programs show it: "Total Time (ns)". */
void lull_out_header(struct lull_str *to, const struct lull_out_column *column);

/* What the format with this number is for, and its arguments ("nohdr nolimit"; "" if none). */
const char *lull_out_format_summary(int format);
const char *lull_out_format_args(int format);

/*
 * Set format and arguments from FORMAT[:ARGUMENT...], such as "csv:nohdr". LULL_E_USAGE with a
 * sentence if the format is not known or does not take the argument. Title, style sheet and widths
 * are borrowed from `text`, which must live as long as the options.
 */
int lull_out_options_parse(struct lull_out_options *options, const char *text,
			   struct lull_err *err);

/*
 * Rows that follow each other and are equal in this column get an order that does not depend on
 * where they came from: by their other cells, from the left, large numbers and small texts first.
 */
void lull_out_settle(struct lull_out *out, size_t column);

/*
 * Print rows from now on as they come; sorting is not possible. `options` and what they point to
 * must live until lull_out_finish(). `open` is called once, or never if there are no rows.
 */
void lull_out_stream(struct lull_out *out, const struct lull_out_options *options,
		     lull_out_open *open, void *ctx);

/* Print the rest of a stream and end it. Fails if `open` or the stream failed. */
int lull_out_finish(struct lull_out *out, struct lull_err *err);

/* Sort, cut and print. LULL_E_IO if the stream fails. The rows stay. */
int lull_out_write(const struct lull_out *out, const struct lull_out_options *options, FILE *to,
		   struct lull_err *err);

#endif
