/*
 * made_rows - rows that are computed on demand, in memory: short tables such as
 * devices, enumerations and steps.
 */
#ifndef LULL_QUERY_MADE_ROWS_H
#define LULL_QUERY_MADE_ROWS_H

#include "base/types.h"
#include "base/vec.h"

struct lull_values;

struct lull_row_cell {
	enum { LULL_ROW_NULL = 0, LULL_ROW_INT, LULL_ROW_REAL, LULL_ROW_TEXT } kind;
	u32 len; /* of text */
	union {
		i64 i;
		f64 f;
		size_t off; /* of text, in the texts of the rows */
	};
};

struct lull_made_rows {
	size_t n_cols;
	struct lull_vec cells; /* struct lull_row_cell, n_cols for each row */
	struct lull_vec texts; /* char */
	size_t n_filled;       /* of the last row */
};

/* Fills the rows of a table. */
typedef void lull_make_fn(struct lull_made_rows *rows, struct lull_values *values);

/* No rows of this many columns. */
struct lull_made_rows *lull_rows_new(size_t n_cols);

/* Free them. Accepts NULL. */
void lull_rows_free(struct lull_made_rows *rows);

/* Begin a row; cells that are not put are null. */
void lull_rows_add(struct lull_made_rows *rows);

/* Put the next cell of the last row. */
void lull_rows_int(struct lull_made_rows *rows, i64 value);
void lull_rows_real(struct lull_made_rows *rows, f64 value);
void lull_rows_text(struct lull_made_rows *rows, const char *text, size_t len); /* NULL: null */
void lull_rows_null(struct lull_made_rows *rows);

/* How many there are. */
size_t lull_rows_len(const struct lull_made_rows *rows);

/* A cell, and the text of one that is text. */
const struct lull_row_cell *lull_rows_get(const struct lull_made_rows *rows, size_t row,
					  size_t col);
const char *lull_rows_get_text(const struct lull_made_rows *rows, const struct lull_row_cell *cell);

#endif
