/*
 * json: an array of objects keyed by the header. Empty cells are null.
 */
#include "base/out_int.h"

#include "base/json.h"

static void put_cell(struct lull_json *j, const struct lull_out_view *view, size_t row,
		     size_t column)
{
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	int decimals;
	f64 value;

	if (cell->kind == LULL_OUT_CELL_TEXT)
		lull_json_text(j, cell->text);
	else if (cell->kind == LULL_OUT_CELL_EMPTY)
		lull_json_null(j);
	if (cell->kind == LULL_OUT_CELL_TEXT || cell->kind == LULL_OUT_CELL_EMPTY)
		return;
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

static void write(const struct lull_out_view *view, FILE *to)
{
	const struct lull_out *out = view->out;
	struct lull_str header = LULL_STR_INIT;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_array(&j);
	for (size_t row = 0; row < view->n_rows; row++) {
		lull_json_object(&j);
		for (size_t c = 0; c < out->n_columns; c++) {
			lull_str_clear(&header);
			lull_out_format_header(&header, view, c, false);
			lull_json_key(&j, lull_str_text(&header));
			put_cell(&j, view, row, c);
		}
		lull_json_end(&j);
	}
	lull_json_end(&j);
	lull_str_release(&header);
}

const struct lull_out_format lull_out_format_json = {
	.name = "json",
	.summary = "array of objects, keyed by the header",
	.args = "",
	.write = write,
};
