/*
 * out_int - what the formats of base/out share.
 *
 * A format gets the rows already sorted and cut (`view`) and turns cells into text with the helpers
 * below. It does not look at write errors: lull_out_write() checks the stream once, at the end.
 */
#ifndef LULL_BASE_OUT_INT_H
#define LULL_BASE_OUT_INT_H

#include "base/out.h"
#include "base/str.h"

struct lull_out_view {
	const struct lull_out *out;
	const struct lull_out_options *options;
	const size_t *rows; /* the rows to print, in order */
	size_t n_rows;
};

struct lull_out_format {
	const char *name;
	const char *summary; /* what it is for */
	const char *args;    /* words of lull_out_options_parse() it takes, "" if none */
	void (*write)(const struct lull_out_view *view, FILE *to);
};

#define OUT_FORMAT(name) extern const struct lull_out_format lull_out_format_##name;
#include "base/out_formats.def"
#undef OUT_FORMAT

/* The cell of a printed row. */
const struct lull_out_cell *lull_out_cell_get(const struct lull_out_view *view, size_t row,
					      size_t column);

/* The header of a column; with its unit unless the values carry it themselves (`is_human`). */
void lull_out_format_header(struct lull_str *to, const struct lull_out_view *view, size_t column,
			    bool is_human);

/* The cell as machines read it: no separators, "" for an empty one. Appended. */
void lull_out_format_plain(struct lull_str *to, const struct lull_out_view *view, size_t row,
			   size_t column);

/* The cell as people read it: grouped digits, or 1.23 ms if the options say so. Appended. */
void lull_out_format_nice(struct lull_str *to, const struct lull_out_view *view, size_t row,
			  size_t column);

/* The value of a number cell in the unit that is shown, and its digits behind the point. */
f64 lull_out_value(const struct lull_out_view *view, size_t row, size_t column, int *decimals);

#endif
