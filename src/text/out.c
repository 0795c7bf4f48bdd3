#include "text/out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/convert.h"
#include "base/mem.h"
#include "text/out_int.h"
#include "base/sort.h"
#include "text/term.h"

void lull_out_init(struct lull_out *out, const struct lull_out_column *columns, size_t n_columns)
{
	*out = (struct lull_out){ .columns = columns, .n_columns = n_columns };
	lull_vec_init(&out->cells, sizeof(struct lull_out_cell));
}

void lull_out_drop_last(struct lull_out *out, size_t n)
{
	assert(!out->cells.n && n <= out->n_columns);
	out->n_columns -= n;
}

void lull_out_release(struct lull_out *out)
{
	lull_out_release_page(out);
	lull_vec_release(&out->cells);
	lull_str_release(&out->texts);
	lull_str_release(&out->note);
	out->n_filled = 0;
	out->n_flushed = 0;
}

size_t lull_out_n_kept(const struct lull_out *out)
{
	return out->n_columns ? out->cells.n / out->n_columns : 0;
}

size_t lull_out_len(const struct lull_out *out)
{
	return out->n_flushed + lull_out_n_kept(out);
}

void lull_out_row(struct lull_out *out)
{
	if (out->line) {
		lull_out_line_row(out);
		return;
	}
	if (out->page && lull_out_n_kept(out) == LULL_OUT_BATCH_ROWS)
		lull_out_flush(out);
	lull_vec_extend(&out->cells, out->n_columns);
	out->n_filled = 0;
}

static struct lull_out_cell *next_cell(struct lull_out *out)
{
	assert(out->cells.n && out->n_filled < out->n_columns);
	return (struct lull_out_cell *)out->cells.at + out->cells.n - out->n_columns +
	       out->n_filled++;
}

struct lull_str *lull_out_text_begin(struct lull_out *out)
{
	struct lull_out_cell *cell;

	if (out->line) {
		lull_str_clear(&out->texts);
		return &out->texts;
	}
	cell = next_cell(out);
	cell->kind = LULL_OUT_CELL_TEXT;
	cell->text_off = out->texts.len;
	return &out->texts;
}

void lull_out_text_end(struct lull_out *out)
{
	struct lull_out_cell *cell;

	if (out->line) {
		lull_out_line_text(out, lull_str_text(&out->texts), out->texts.len);
		return;
	}
	cell = (struct lull_out_cell *)out->cells.at + out->cells.n - out->n_columns +
	       out->n_filled - 1;
	cell->text_len = (u32)(out->texts.len - cell->text_off);
	lull_str_add(&out->texts, "", 1);
}

void lull_out_bytes(struct lull_out *out, const char *text, size_t len)
{
	if (out->line) {
		lull_out_line_text(out, text, len);
		return;
	}
	lull_str_add(lull_out_text_begin(out), text, len);
	lull_out_text_end(out);
}

void lull_out_text(struct lull_out *out, const char *text)
{
	if (text)
		lull_out_bytes(out, text, strlen(text));
	else
		lull_out_skip(out);
}

void lull_out_i64(struct lull_out *out, i64 value)
{
	struct lull_out_cell *cell;

	if (out->line) {
		lull_out_line_i64(out, value);
		return;
	}
	cell = next_cell(out);
	cell->kind = LULL_OUT_CELL_I64;
	cell->i = value;
}

void lull_out_f64(struct lull_out *out, f64 value)
{
	struct lull_out_cell *cell;

	if (!isfinite(value)) {
		lull_out_skip(out);
		return;
	}
	if (out->line) {
		lull_out_line_f64(out, value);
		return;
	}
	cell = next_cell(out);
	cell->kind = LULL_OUT_CELL_F64;
	cell->f = value;
}

void lull_out_skip(struct lull_out *out)
{
	if (out->line)
		lull_out_line_skip(out);
	else
		next_cell(out);
}

int lull_out_find(const struct lull_out *out, const char *name)
{
	for (size_t i = 0; i < out->n_columns; i++) {
		if (!strcasecmp(out->columns[i].name, name))
			return (int)i;
	}
	return -1;
}

const struct lull_out_cell *lull_out_cell_get(const struct lull_out_view *view, size_t row,
					      size_t column)
{
	size_t kept = view->rows ? view->rows[row] : row;

	return (const struct lull_out_cell *)view->out->cells.at + kept * view->out->n_columns +
	       column;
}

const char *lull_out_cell_text(const struct lull_out *out, const struct lull_out_cell *cell)
{
	return out->texts.at + cell->text_off;
}

/* By enum lull_out_time: the name, how many ns, and the digits that keep every ns. */
static const struct {
	const char *name;
	f64 ns;
	int decimals;
} time_units[] = {
	[LULL_OUT_TIME_NS] = { "ns", 1, 0 },
	[LULL_OUT_TIME_US] = { "us", 1e3, 3 },
	[LULL_OUT_TIME_MS] = { "ms", 1e6, 6 },
	[LULL_OUT_TIME_S] = { "s", 1e9, 9 },
};

/* Sizes are in MB where other tools have them so; people get a unit that fits each. */
static bool is_megabytes(const struct lull_out_column *column)
{
	return column->kind == LULL_OUT_FLOAT && column->unit && !strcmp(column->unit, "MB");
}

/* The unit a header shows, or NULL. */
static const char *unit_of(const struct lull_out_view *view, const struct lull_out_column *column,
			   bool is_human)
{
	if (column->unit)
		return is_human && is_megabytes(column) ? NULL : column->unit;
	switch (column->kind) {
	case LULL_OUT_PERCENT:
		return "%";
	case LULL_OUT_NS:
		return is_human ? NULL : time_units[view->options->time].name;
	case LULL_OUT_BYTES:
		return is_human ? NULL : "bytes";
	default:
		return NULL;
	}
}

void lull_out_format_header(struct lull_str *to, const struct lull_out_view *view, size_t column,
			    bool is_human)
{
	const char *unit = unit_of(view, &view->out->columns[column], is_human);

	lull_str_puts(to, view->out->columns[column].name);
	if (unit)
		lull_str_addf(to, " (%s)", unit);
}

void lull_out_header(struct lull_str *to, const struct lull_out_column *column)
{
	const struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const struct lull_out out = { .columns = column, .n_columns = 1 };
	const struct lull_out_view view = { .out = &out, .options = &options };

	lull_out_format_header(to, &view, 0, false);
}

static f64 number_of(const struct lull_out_cell *cell)
{
	return cell->kind == LULL_OUT_CELL_I64 ? (f64)cell->i : cell->f;
}

/* The value in the unit that is shown. */
static f64 shown_value(const struct lull_out_options *options, const struct lull_out_column *column,
		       const struct lull_out_cell *cell, int *decimals)
{
	enum lull_out_time time = column->kind == LULL_OUT_NS ? options->time : LULL_OUT_TIME_NS;

	*decimals = cell->kind == LULL_OUT_CELL_F64 ? column->decimals : 0;
	if (column->kind == LULL_OUT_PERCENT)
		*decimals = 1;
	if (time != LULL_OUT_TIME_NS)
		*decimals = time_units[time].decimals;
	return number_of(cell) / time_units[time].ns;
}

f64 lull_out_value(const struct lull_out_view *view, size_t row, size_t column, int *decimals)
{
	return shown_value(view->options, &view->out->columns[column],
			   lull_out_cell_get(view, row, column), decimals);
}

void lull_out_format_number(struct lull_str *to, const struct lull_out_options *options,
			    const struct lull_out_column *column, const struct lull_out_cell *cell)
{
	int decimals;
	f64 value;

	if (cell->kind == LULL_OUT_CELL_EMPTY)
		return;
	/* Most cells are whole numbers that are shown as they are. */
	if (cell->kind == LULL_OUT_CELL_I64 && options->time == LULL_OUT_TIME_NS &&
	    column->kind != LULL_OUT_PERCENT) {
		lull_str_add_i64(to, cell->i);
		return;
	}
	value = shown_value(options, column, cell, &decimals);
	if (cell->kind == LULL_OUT_CELL_F64 &&
	    (column->kind == LULL_OUT_NUMBER || column->kind == LULL_OUT_TEXT)) {
		lull_str_addf(to, "%.15g", cell->f);
		return;
	}
	/* Beyond 2^53 a double would change the last digits of a whole number. */
	if (decimals || cell->kind == LULL_OUT_CELL_F64)
		lull_str_add_fixed(to, value, decimals);
	else
		lull_str_add_i64(to, cell->i);
}

void lull_out_format_plain(struct lull_str *to, const struct lull_out_view *view, size_t row,
			   size_t column)
{
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);

	if (cell->kind == LULL_OUT_CELL_TEXT)
		lull_str_add(to, lull_out_cell_text(view->out, cell), cell->text_len);
	else
		lull_out_format_number(to, view->options, &view->out->columns[column], cell);
}

/* Rows of one second are apart by microseconds. */
static void put_moment(struct lull_str *to, f64 ns)
{
	bool is_long = fabs(ns) >= time_units[LULL_OUT_TIME_S].ns;
	enum lull_out_time time = is_long ? LULL_OUT_TIME_S : LULL_OUT_TIME_MS;

	lull_str_add_fixed(to, ns / time_units[time].ns, is_long ? 6 : 3);
	lull_str_addf(to, " %s", time_units[time].name);
}

static void put_human(struct lull_str *to, const struct lull_out_column *column, f64 value)
{
	u64 whole = lull_u64_of(round(fabs(value)));

	if (column->is_moment) {
		put_moment(to, value);
		return;
	}
	if (value < 0)
		lull_str_puts(to, "-");
	lull_str_puts(to, column->kind == LULL_OUT_NS ? lull_format_ns(whole).text
						      : lull_format_bytes(whole).text);
}

void lull_out_format_nice(struct lull_str *to, const struct lull_out_view *view, size_t row,
			  size_t column)
{
	const struct lull_out_column *of = &view->out->columns[column];
	enum lull_out_kind kind = of->kind;
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	bool is_number = cell->kind == LULL_OUT_CELL_I64 || cell->kind == LULL_OUT_CELL_F64;
	bool has_scale = kind == LULL_OUT_NS || kind == LULL_OUT_BYTES || is_megabytes(of);
	bool is_grouped = is_number && kind != LULL_OUT_ID && kind != LULL_OUT_NUMBER &&
			  !view->options->is_ungrouped;
	struct lull_str plain = LULL_STR_INIT;

	if (is_number && view->options->is_human && has_scale) {
		put_human(to, of, number_of(cell) * (is_megabytes(of) ? 1e6 : 1));
		return;
	}
	lull_out_format_plain(&plain, view, row, column);
	lull_str_puts(to, is_grouped ? lull_format_group_text(lull_str_text(&plain)).text
				     : lull_str_text(&plain));
	lull_str_release(&plain);
}

/* ---- order ---- */

/* Below, equal or above zero, smallest first; empty cells are below everything, text above numbers.
 */
static int compare_cells(const struct lull_out *out, const struct lull_out_cell *a,
			 const struct lull_out_cell *b)
{
	bool is_text_a = a->kind == LULL_OUT_CELL_TEXT, is_text_b = b->kind == LULL_OUT_CELL_TEXT;

	if (!a->kind || !b->kind)
		return !!a->kind - !!b->kind;
	if (is_text_a && is_text_b)
		return strcmp(lull_out_cell_text(out, a), lull_out_cell_text(out, b));
	if (is_text_a || is_text_b)
		return is_text_a - is_text_b;
	if (a->kind == LULL_OUT_CELL_I64 && b->kind == LULL_OUT_CELL_I64)
		return (a->i > b->i) - (a->i < b->i);
	return (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
}

static int compare_all_cells(const void *a, const void *b, void *ctx)
{
	const struct lull_out_cell *x = a, *y = b;
	const struct lull_out *out = ctx;
	int order = 0;

	for (size_t c = 0; c < out->n_columns && !order; c++) {
		order = compare_cells(out, &x[c], &y[c]);
		if (x[c].kind != LULL_OUT_CELL_TEXT && y[c].kind != LULL_OUT_CELL_TEXT)
			order = -order;
	}
	return order;
}

void lull_out_settle(struct lull_out *out, size_t column)
{
	struct lull_out_cell *cells = out->cells.at;
	size_t n = out->n_columns, n_rows = lull_out_n_kept(out), end;

	for (size_t first = 0; first < n_rows; first = end) {
		for (end = first + 1; end < n_rows; end++) {
			if (compare_cells(out, &cells[first * n + column],
					  &cells[end * n + column]))
				break;
		}
		if (end > first + 1)
			lull_sort_r(&cells[first * n], end - first, n * sizeof(*cells),
				    compare_all_cells, out);
	}
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct lull_out_view *view = ctx;
	size_t row_a = *(const size_t *)a, row_b = *(const size_t *)b;
	size_t column = (size_t)view->options->sort_ix, n = view->out->n_columns;
	int order = compare_cells(view->out, lull_vec_get(&view->out->cells, row_a * n + column),
				  lull_vec_get(&view->out->cells, row_b * n + column));

	/* Equal rows keep the order in which they were added, so that the same report prints the
	 * same. */
	if (!order)
		return (row_a > row_b) - (row_a < row_b);
	return view->options->is_ascending ? order : -order;
}

void lull_out_sort(struct lull_out_view *view, size_t *rows)
{
	lull_sort_r(rows, view->n_rows, sizeof(*rows), compare_rows, view);
}
