#include "base/out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/out_int.h"
#include "base/term.h"

const char *const lull_out_format_names[] = {
#define OUT_FORMAT(name) #name,
#include "base/out_formats.def"
#undef OUT_FORMAT
	NULL,
};

static const struct lull_out_format *const formats[] = {
#define OUT_FORMAT(name) &lull_out_format_##name,
#include "base/out_formats.def"
#undef OUT_FORMAT
};

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
	struct lull_out_cell *cells = out->cells.at;

	for (size_t i = 0; i < out->cells.n; i++) {
		if (cells[i].kind == LULL_OUT_CELL_TEXT)
			free(cells[i].text);
	}
	lull_vec_release(&out->cells);
	out->n_filled = 0;
}

void lull_out_row(struct lull_out *out)
{
	lull_vec_extend(&out->cells, out->n_columns);
	out->n_filled = 0;
}

static struct lull_out_cell *next_cell(struct lull_out *out)
{
	assert(out->cells.n && out->n_filled < out->n_columns);
	return lull_vec_get(&out->cells, out->cells.n - out->n_columns + out->n_filled++);
}

void lull_out_text(struct lull_out *out, const char *text)
{
	struct lull_out_cell *cell = next_cell(out);

	if (!text)
		return;
	cell->kind = LULL_OUT_CELL_TEXT;
	cell->text = lull_strdup(text);
}

void lull_out_i64(struct lull_out *out, i64 value)
{
	struct lull_out_cell *cell = next_cell(out);

	cell->kind = LULL_OUT_CELL_I64;
	cell->i = value;
}

void lull_out_f64(struct lull_out *out, f64 value)
{
	struct lull_out_cell *cell = next_cell(out);

	if (!isfinite(value))
		return;
	cell->kind = LULL_OUT_CELL_F64;
	cell->f = value;
}

void lull_out_skip(struct lull_out *out)
{
	next_cell(out);
}

size_t lull_out_len(const struct lull_out *out)
{
	return out->n_columns ? out->cells.n / out->n_columns : 0;
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
	return lull_vec_get(&view->out->cells, view->rows[row] * view->out->n_columns + column);
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

/* The unit a header shows, or NULL. */
static const char *unit_of(const struct lull_out_view *view, const struct lull_out_column *column,
			   bool is_human)
{
	if (column->unit)
		return column->unit;
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

static f64 number_of(const struct lull_out_cell *cell)
{
	return cell->kind == LULL_OUT_CELL_I64 ? (f64)cell->i : cell->f;
}

f64 lull_out_value(const struct lull_out_view *view, size_t row, size_t column, int *decimals)
{
	const struct lull_out_column *c = &view->out->columns[column];
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	enum lull_out_time time = c->kind == LULL_OUT_NS ? view->options->time : LULL_OUT_TIME_NS;

	*decimals = cell->kind == LULL_OUT_CELL_F64 ? c->decimals : 0;
	if (c->kind == LULL_OUT_PERCENT)
		*decimals = 1;
	if (time != LULL_OUT_TIME_NS)
		*decimals = time_units[time].decimals;
	return number_of(cell) / time_units[time].ns;
}

void lull_out_format_plain(struct lull_str *to, const struct lull_out_view *view, size_t row,
			   size_t column)
{
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	int decimals;
	f64 value;

	if (cell->kind == LULL_OUT_CELL_TEXT)
		lull_str_puts(to, cell->text);
	if (cell->kind == LULL_OUT_CELL_TEXT || cell->kind == LULL_OUT_CELL_EMPTY)
		return;
	value = lull_out_value(view, row, column, &decimals);
	if (cell->kind == LULL_OUT_CELL_F64 &&
	    (view->out->columns[column].kind == LULL_OUT_NUMBER ||
	     view->out->columns[column].kind == LULL_OUT_TEXT)) {
		lull_str_addf(to, "%.15g", cell->f);
		return;
	}
	/* Beyond 2^53 a double would change the last digits of a whole number. */
	if (decimals || cell->kind == LULL_OUT_CELL_F64)
		lull_str_addf(to, "%.*f", decimals, value);
	else
		lull_str_addf(to, "%" PRId64, cell->i);
}

static void put_human(struct lull_str *to, enum lull_out_kind kind, f64 value)
{
	u64 whole = (u64)llround(fabs(value));

	if (value < 0)
		lull_str_puts(to, "-");
	lull_str_puts(to, kind == LULL_OUT_NS ? lull_format_ns(whole).text
					      : lull_format_bytes(whole).text);
}

void lull_out_format_nice(struct lull_str *to, const struct lull_out_view *view, size_t row,
			  size_t column)
{
	enum lull_out_kind kind = view->out->columns[column].kind;
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, column);
	bool is_number = cell->kind == LULL_OUT_CELL_I64 || cell->kind == LULL_OUT_CELL_F64;
	bool has_scale = kind == LULL_OUT_NS || kind == LULL_OUT_BYTES;
	bool is_grouped = is_number && kind != LULL_OUT_ID && kind != LULL_OUT_NUMBER &&
			  !view->options->is_ungrouped;
	struct lull_str plain = LULL_STR_INIT;

	if (is_number && view->options->is_human && has_scale) {
		put_human(to, kind, number_of(cell));
		return;
	}
	lull_out_format_plain(&plain, view, row, column);
	lull_str_puts(to, is_grouped ? lull_format_group_text(lull_str_text(&plain)).text
				     : lull_str_text(&plain));
	lull_str_release(&plain);
}

/* Below, equal or above zero, smallest first; empty cells are below everything, text above numbers.
 */
static int compare_cells(const struct lull_out_cell *a, const struct lull_out_cell *b)
{
	bool is_text_a = a->kind == LULL_OUT_CELL_TEXT, is_text_b = b->kind == LULL_OUT_CELL_TEXT;

	if (!a->kind || !b->kind)
		return !!a->kind - !!b->kind;
	if (is_text_a || is_text_b)
		return is_text_a && is_text_b ? strcmp(a->text, b->text) : is_text_a - is_text_b;
	if (a->kind == LULL_OUT_CELL_I64 && b->kind == LULL_OUT_CELL_I64)
		return (a->i > b->i) - (a->i < b->i);
	return (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct lull_out_view *view = ctx;
	size_t row_a = *(const size_t *)a, row_b = *(const size_t *)b;
	size_t column = (size_t)view->options->sort_ix, n = view->out->n_columns;
	int order = compare_cells(lull_vec_get(&view->out->cells, row_a * n + column),
				  lull_vec_get(&view->out->cells, row_b * n + column));

	/* Equal rows keep the order in which they were added, so that the same report prints the
	 * same. */
	if (!order)
		return (row_a > row_b) - (row_a < row_b);
	return view->options->is_ascending ? order : -order;
}

const char *lull_out_format_summary(int format)
{
	return formats[format]->summary;
}

const char *lull_out_format_args(int format)
{
	return formats[format]->args;
}

int lull_out_write(const struct lull_out *out, const struct lull_out_options *options, FILE *to,
		   struct lull_err *err)
{
	size_t n = lull_out_len(out);
	size_t *rows = lull_alloc(n, sizeof(*rows));
	struct lull_out_view view = { out, options, rows, n };

	for (size_t i = 0; i < n; i++)
		rows[i] = i;
	if (options->sort_ix != LULL_OUT_UNSORTED && n)
		qsort_r(rows, n, sizeof(*rows), compare_rows, &view);
	if (options->top && options->top < n)
		view.n_rows = options->top;
	formats[options->format]->write(&view, to);
	free(rows);
	return ferror(to) ? lull_fail_errno(err, "writing the table") : LULL_OK;
}
