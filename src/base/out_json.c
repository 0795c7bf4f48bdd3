/*
 * json: an array of objects keyed by the header. Empty cells are null.
 */
#include "base/out_int.h"

#include "base/json.h"

static void put_cell(struct lull_json *j, const struct lull_out_column *column,
		     const struct lull_out_cell *cell)
{
	switch (cell->kind) {
	case LULL_OUT_CELL_TEXT:
		lull_json_text(j, cell->text);
		break;
	case LULL_OUT_CELL_I64:
		lull_json_i64(j, cell->i);
		break;
	case LULL_OUT_CELL_F64:
		lull_json_fixed(j, cell->f, lull_out_decimals(column, cell));
		break;
	default:
		lull_json_null(j);
	}
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
			lull_out_format_header(&header, &out->columns[c], false);
			lull_json_key(&j, lull_str_text(&header));
			put_cell(&j, &out->columns[c], lull_out_cell_get(view, row, c));
		}
		lull_json_end(&j);
	}
	lull_json_end(&j);
	lull_str_release(&header);
}

const struct lull_out_format lull_out_format_json = { .name = "json", .write = write };
