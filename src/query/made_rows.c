#include "query/made_rows.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct lull_made_rows *lull_rows_new(size_t n_cols)
{
	struct lull_made_rows *rows = lull_alloc(1, sizeof(*rows));

	rows->n_cols = n_cols;
	lull_vec_init(&rows->cells, sizeof(struct lull_row_cell));
	lull_vec_init(&rows->texts, 1);
	return rows;
}

void lull_rows_free(struct lull_made_rows *rows)
{
	if (!rows)
		return;
	lull_vec_release(&rows->cells);
	lull_vec_release(&rows->texts);
	free(rows);
}

void lull_rows_add(struct lull_made_rows *rows)
{
	lull_vec_extend(&rows->cells, rows->n_cols);
	rows->n_filled = 0;
}

static struct lull_row_cell *next_cell(struct lull_made_rows *rows)
{
	struct lull_row_cell *cells = rows->cells.at;

	assert(rows->n_filled < rows->n_cols);
	return &cells[rows->cells.n - rows->n_cols + rows->n_filled++];
}

void lull_rows_int(struct lull_made_rows *rows, i64 value)
{
	*next_cell(rows) = (struct lull_row_cell){ .kind = LULL_ROW_INT, .i = value };
}

void lull_rows_real(struct lull_made_rows *rows, f64 value)
{
	*next_cell(rows) = (struct lull_row_cell){ .kind = LULL_ROW_REAL, .f = value };
}

void lull_rows_text(struct lull_made_rows *rows, const char *text, size_t len)
{
	struct lull_row_cell *cell = next_cell(rows);

	if (!text)
		return;
	*cell = (struct lull_row_cell){ .kind = LULL_ROW_TEXT,
					.len = (u32)len,
					.off = rows->texts.n };
	lull_vec_add(&rows->texts, text, len);
	*(char *)lull_vec_push(&rows->texts) = '\0';
}

void lull_rows_null(struct lull_made_rows *rows)
{
	next_cell(rows);
}

size_t lull_rows_len(const struct lull_made_rows *rows)
{
	return rows->cells.n / rows->n_cols;
}

const struct lull_row_cell *lull_rows_get(const struct lull_made_rows *rows, size_t row, size_t col)
{
	const struct lull_row_cell *cells = rows->cells.at;

	return &cells[row * rows->n_cols + col];
}

const char *lull_rows_get_text(const struct lull_made_rows *rows, const struct lull_row_cell *cell)
{
	return (const char *)rows->texts.at + cell->off;
}
