/*
 * json: an array of objects keyed by the header. Numbers are numbers; an empty cell is "", which is
 * what scripts for other tools of this kind expect.
 */
#include "text/out_int.h"

#include <stdlib.h>

#include "text/json.h"
#include "base/mem.h"

static void put_cell(struct lull_json *j, const struct lull_out_view *view, size_t row,
		     size_t column)
{
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	int decimals;
	f64 value;

	/* What SQL says is NULL stays that. */
	if (cell->kind == LULL_OUT_CELL_EMPTY &&
	    view->out->columns[column].kind == LULL_OUT_NUMBER) {
		lull_json_null(j);
		return;
	}
	if (cell->kind == LULL_OUT_CELL_TEXT || cell->kind == LULL_OUT_CELL_EMPTY) {
		lull_json_text(j, cell->kind ? lull_out_cell_text(view->out, cell) : "");
		return;
	}
	value = lull_out_value(view, row, column, &decimals);
	if (cell->kind == LULL_OUT_CELL_F64 &&
	    (view->out->columns[column].kind == LULL_OUT_NUMBER ||
	     view->out->columns[column].kind == LULL_OUT_TEXT))
		lull_json_f64(j, cell->f);
	else if (decimals || cell->kind == LULL_OUT_CELL_F64)
		lull_json_fixed(j, value, decimals);
	else
		lull_json_i64(j, cell->i);
}

static void begin(struct lull_out_page *page)
{
	struct lull_json *j = lull_alloc(1, sizeof(*j));

	lull_json_init(j, page->to);
	j->is_pretty = true;
	lull_json_array(j);
	page->state = j;
}

static void put_rows(struct lull_out_page *page)
{
	const struct lull_out_view *view = &page->view;
	struct lull_str header = LULL_STR_INIT;
	struct lull_json *j = page->state;

	for (size_t row = 0; row < view->n_rows; row++) {
		lull_json_object(j);
		for (size_t c = 0; c < view->out->n_columns; c++) {
			lull_str_clear(&header);
			lull_out_format_header(&header, view, c, false);
			lull_json_key(j, lull_str_text(&header));
			put_cell(j, view, row, c);
		}
		lull_json_end(j);
	}
	lull_str_release(&header);
}

static void end(struct lull_out_page *page)
{
	lull_json_end(page->state);
	free(page->state);
}

const struct lull_out_format lull_out_format_json = {
	.name = "json",
	.summary = "array of objects, keyed by the header",
	.args = "",
	.begin = begin,
	.rows = put_rows,
	.end = end,
};
