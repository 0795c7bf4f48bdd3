/*
 * out_int - what the formats of text/out share.
 *
 * A format prints a page: begin() with the first rows in view, rows() for each batch of them, end()
 * once all are printed. It appends to page->text, which is written out after each call, and does
 * not look at write errors: they are checked once, at the end.
 */
#ifndef LULL_TEXT_OUT_INT_H
#define LULL_TEXT_OUT_INT_H

#include "text/out.h"
#include "base/str.h"

struct lull_out_view {
	const struct lull_out *out;
	const struct lull_out_options *options;
	const size_t *rows; /* the rows to print, in order; NULL for all as they are */
	size_t n_rows;
};

struct lull_out_page {
	struct lull_out_view view; /* the rows of this batch */
	FILE *to;
	struct lull_str text; /* what is to be written */
	void *state;	      /* of the format */
	u64 n_left_out;	      /* rows after `top`, known at the end */
	size_t n_printed;     /* rows of earlier batches */
	lull_out_open *open;  /* of a stream, NULL once it was called */
	void *open_ctx;
	struct lull_err err; /* of `open` */
};

struct lull_out_format {
	const char *name;
	const char *summary; /* what it is for */
	const char *args;    /* words of lull_out_options_parse() it takes, "" if none */
	/*
	 * Append the text of a cell. Formats that have it are lines of cells with a separator in
	 * between, which can be printed cell by cell; NULL for others.
	 */
	void (*field)(struct lull_str *line, const struct lull_out_options *options,
		      const char *text, size_t len);
	char separator;
	void (*begin)(struct lull_out_page *page);
	void (*rows)(struct lull_out_page *page);
	void (*end)(struct lull_out_page *page);
};

#define OUT_FORMAT(name) extern const struct lull_out_format lull_out_format_##name;
#include "text/out_formats.def"
#undef OUT_FORMAT

/* Rows that are kept: all, or those of a stream that are not printed yet. */
size_t lull_out_n_kept(const struct lull_out *out);

/* Print the rows of a stream that are kept, up to `top`, and forget them. */
void lull_out_flush(struct lull_out *out);

/* Write out what a stream of lines has, once it is much. */
void lull_out_flush_lines(struct lull_out *out);

/* The format of a page. */
const struct lull_out_format *lull_out_page_format(const struct lull_out_page *page);

/* Begin a row, fill a cell, and end the last row of a stream of lines (out_line.c). */
void lull_out_line_row(struct lull_out *out);
void lull_out_line_i64(struct lull_out *out, i64 value);
void lull_out_line_f64(struct lull_out *out, f64 value);
void lull_out_line_text(struct lull_out *out, const char *text, size_t len);
void lull_out_line_skip(struct lull_out *out);
void lull_out_line_end(struct lull_out *out);

/* Free what belongs to a stream; nothing if it is none. */
void lull_out_release_page(struct lull_out *out);

/* Bring the rows of the view, all of them, in the order that its options want. */
void lull_out_sort(struct lull_out_view *view, size_t *rows);

/* The cell of a printed row. */
const struct lull_out_cell *lull_out_cell_get(const struct lull_out_view *view, size_t row,
					      size_t column);

/* The header of a column; with its unit unless the values carry it themselves (`is_human`). */
void lull_out_format_header(struct lull_str *to, const struct lull_out_view *view, size_t column,
			    bool is_human);

/* The cell as machines read it: no separators, "" for an empty one. Appended. */
void lull_out_format_plain(struct lull_str *to, const struct lull_out_view *view, size_t row,
			   size_t column);

/* The same for any cell of a column that is no text. */
void lull_out_format_number(struct lull_str *to, const struct lull_out_options *options,
			    const struct lull_out_column *column, const struct lull_out_cell *cell);

/* The cell as people read it: grouped digits, or 1.23 ms if the options say so. Appended. */
void lull_out_format_nice(struct lull_str *to, const struct lull_out_view *view, size_t row,
			  size_t column);

/* The value of a number cell in the unit that is shown, and its digits after the point. */
f64 lull_out_value(const struct lull_out_view *view, size_t row, size_t column, int *decimals);

/* As wide as needed. */
#define LULL_OUT_AUTO_WIDTH (-1)

/* What options->widths says about a column: LULL_OUT_AUTO_WIDTH, 0 to hide it, or a width. */
int lull_out_width_of(const struct lull_out_options *options, size_t column);

/* Bytes of title or css, which end where the next one begins. */
size_t lull_out_arg_len(const char *text);

#endif
