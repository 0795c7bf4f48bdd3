/*
 * column and table: aligned text for people; table draws boxes.
 *
 * A column is as wide as its widest cell among the first rows. Texts get at most MAX_TEXT_COLUMNS,
 * unless told otherwise, and end in "…" where they are cut. On a terminal that is too narrow the
 * widest text columns give way, down to FAIR_TEXT_COLUMNS, by losing what says least; if that is
 * not enough, spare columns are left out, the last first, and named below the table; then texts
 * give way down to MIN_TEXT_COLUMNS. Numbers are never cut.
 */
#include "text/out_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/shorten.h"
#include "text/term.h"

#define MIN_TEXT_COLUMNS 16

/* As long as there are spare columns to leave out, texts keep this much. */
#define FAIR_TEXT_COLUMNS 28

#define MAX_TEXT_COLUMNS 100

/* What lies left of the first cell, between cells, and right of the last. */
struct look {
	const char *left, *between, *right;
	bool has_box;
};

static const struct look column_look = { " ", "  ", "", false };
static const struct look table_look = { "| ", " | ", " |", true };

struct grid {
	const struct lull_out *out;
	const struct look *look;
	size_t *widths; /* of each column, LEFT_OUT for one that is not shown */
	size_t limit;	/* columns of the screen, 0 for any number */
	bool has_colour;
	struct lull_str cell; /* scratch */
};

#define LEFT_OUT 0

static bool is_right(const struct lull_out_column *column)
{
	if (column->align == LULL_OUT_AUTO)
		return column->kind != LULL_OUT_TEXT;
	return column->align == LULL_OUT_RIGHT;
}

/*
 * The text of a cell, row -1 being the header. Control characters would break the lines apart or
 * worse, command the terminal: they become blanks.
 */
static const char *text_of(struct grid *g, const struct lull_out_view *view, i64 row, size_t c)
{
	lull_str_clear(&g->cell);
	if (row < 0)
		lull_out_format_header(&g->cell, view, c, view->options->is_human);
	else
		lull_out_format_nice(&g->cell, view, (size_t)row, c);
	for (size_t i = 0; i < g->cell.len; i++) {
		if ((u8)g->cell.at[i] < 0x20 || g->cell.at[i] == 0x7f)
			g->cell.at[i] = ' ';
	}
	return lull_str_text(&g->cell);
}

/* ---- widths ---- */

/* As wide as the header and the rows in view want it. */
static size_t natural_width(struct grid *g, const struct lull_out_view *view, size_t c)
{
	bool is_text = view->out->columns[c].kind == LULL_OUT_TEXT;
	size_t width = 0;

	for (i64 row = -1; row < (i64)view->n_rows; row++) {
		size_t columns = lull_term_columns(text_of(g, view, row, c));

		width = columns > width ? columns : width;
	}
	return is_text && !view->options->is_never_cut && width > MAX_TEXT_COLUMNS
		       ? MAX_TEXT_COLUMNS
		       : width;
}

/* The first column that is shown at or after `c`, or n_columns. */
static size_t shown(const struct grid *g, size_t c)
{
	while (c < g->out->n_columns && g->widths[c] == LEFT_OUT)
		c++;
	return c;
}

/* What the table takes when no text column is wider than `text_limit`. */
static size_t total_width(const struct grid *g, size_t text_limit)
{
	size_t total = strlen(g->look->left) + strlen(g->look->right), between = 0;

	for (size_t c = shown(g, 0); c < g->out->n_columns; c = shown(g, c + 1)) {
		bool is_text = g->out->columns[c].kind == LULL_OUT_TEXT;

		total += between;
		total += is_text && g->widths[c] > text_limit ? text_limit : g->widths[c];
		between = strlen(g->look->between);
	}
	return total;
}

/* The widest text column that can still give way, or n_columns. */
static size_t widest_text(const struct grid *g)
{
	size_t best = g->out->n_columns, best_width = MIN_TEXT_COLUMNS;

	for (size_t c = 0; c < g->out->n_columns; c++) {
		if (g->out->columns[c].kind == LULL_OUT_TEXT && g->widths[c] > best_width) {
			best = c;
			best_width = g->widths[c];
		}
	}
	return best;
}

/* The last spare column that is still shown, or n_columns. */
static size_t last_spare(const struct grid *g)
{
	for (size_t c = g->out->n_columns; c-- > 0;) {
		if (g->out->columns[c].is_spare && g->widths[c] != LEFT_OUT)
			return c;
	}
	return g->out->n_columns;
}

/* Columns go only if the table would not fit with its texts fairly short. */
static void fit(struct grid *g)
{
	size_t n = g->out->n_columns, c;

	if (!g->limit)
		return;
	while (total_width(g, FAIR_TEXT_COLUMNS) > g->limit && (c = last_spare(g)) < n)
		g->widths[c] = LEFT_OUT;
	while (total_width(g, SIZE_MAX) > g->limit && (c = widest_text(g)) < n)
		g->widths[c]--;
}

/* Widths that were asked for are kept, whatever the screen. */
static void set_widths(struct grid *g, const struct lull_out_view *view)
{
	for (size_t c = 0; c < g->out->n_columns; c++) {
		int wanted = lull_out_width_of(view->options, c);

		g->widths[c] = wanted < 0 ? natural_width(g, view, c) : (size_t)wanted;
	}
	if (!view->options->widths)
		fit(g);
}

/* Columns of the screen the table may take, 0 for any number. */
static size_t width_limit(const struct lull_out_page *page)
{
	const struct lull_out_options *options = page->view.options;

	if (options->is_never_cut)
		return 0;
	if (options->width)
		return (size_t)options->width;
	return lull_term_is_tty(page->to) ? (size_t)lull_term_width(page->to) : 0;
}

/* ---- lines ---- */

static void put_blanks(struct lull_str *to, size_t n)
{
	while (n--)
		lull_str_add(to, " ", 1);
}

/* Append a text, shortened to the width of its column; its columns are returned. */
static size_t put_text(struct grid *g, struct lull_str *to, const char *text, size_t c)
{
	size_t columns = lull_term_columns(text), width = g->widths[c];

	if (columns <= width || g->out->columns[c].kind != LULL_OUT_TEXT) {
		lull_str_puts(to, text);
		return columns;
	}
	if (g->limit)
		lull_shorten_name(to, text, width);
	else
		lull_shorten_end(to, text, width);
	return width;
}

static void put_cell(struct grid *g, struct lull_out_page *page, i64 row, size_t c)
{
	const char *text = text_of(g, &page->view, row, c);
	struct lull_str *to = &page->text;
	size_t columns = lull_term_columns(text);

	if (is_right(&g->out->columns[c]) && columns < g->widths[c])
		put_blanks(to, g->widths[c] - columns);
	columns = put_text(g, to, text, c);
	if (!is_right(&g->out->columns[c]) && columns < g->widths[c])
		put_blanks(to, g->widths[c] - columns);
}

/* Row -1 is the header. Blanks at the end of a line are left out. */
static void put_line(struct grid *g, struct lull_out_page *page, i64 row)
{
	const char *before = g->look->left;
	struct lull_str *to = &page->text;
	size_t from = to->len;

	for (size_t c = shown(g, 0); c < g->out->n_columns; c = shown(g, c + 1)) {
		lull_str_puts(to, before);
		put_cell(g, page, row, c);
		before = g->look->between;
	}
	lull_str_puts(to, g->look->right);
	while (to->len > from && to->at[to->len - 1] == ' ')
		to->len--;
	lull_str_add(to, "\n", 1);
}

static void put_rule(const struct grid *g, struct lull_str *to)
{
	bool has_box = g->look->has_box;
	const char *before = has_box ? "+" : " ";

	lull_str_puts(to, lull_term_colour(LULL_COLOUR_DIM, g->has_colour));
	for (size_t c = shown(g, 0); c < g->out->n_columns; c = shown(g, c + 1)) {
		size_t dashes = g->widths[c] + (has_box ? 2 : 0);

		lull_str_puts(to, before);
		while (dashes--)
			lull_str_add(to, "-", 1);
		before = has_box ? "+" : "  ";
	}
	lull_str_puts(to, has_box ? "+" : "");
	lull_str_addf(to, "%s\n", lull_term_colour(LULL_COLOUR_NONE, g->has_colour));
}

/* Whoever reads a table must know that it is not the whole of it. */
static void put_left_out(const struct grid *g, struct lull_out_page *page)
{
	const char *before = " not shown, the terminal is too narrow: ";
	struct lull_str *to = &page->text;

	lull_str_puts(to, lull_term_colour(LULL_COLOUR_DIM, g->has_colour));
	if (page->n_left_out)
		lull_str_addf(to, " ... %s more row%s\n",
			      lull_format_grouped((i64)page->n_left_out).text,
			      page->n_left_out == 1 ? "" : "s");
	for (size_t c = 0; c < g->out->n_columns; c++) {
		if (g->widths[c] != LEFT_OUT || page->view.options->widths)
			continue;
		lull_str_addf(to, "%s%s", before, g->out->columns[c].name);
		before = ", ";
	}
	if (*before == ',')
		lull_str_add(to, "\n", 1);
	lull_str_puts(to, lull_term_colour(LULL_COLOUR_NONE, g->has_colour));
}

/* ---- the formats ---- */

static void begin_with(struct lull_out_page *page, const struct look *look)
{
	struct grid *g = lull_alloc(1, sizeof(*g));
	struct lull_str *to = &page->text;

	*g = (struct grid){ .out = page->view.out, .look = look, .limit = width_limit(page) };
	g->has_colour = lull_term_has_colour(page->to);
	g->widths = lull_alloc(g->out->n_columns, sizeof(*g->widths));
	set_widths(g, &page->view);
	page->state = g;
	if (look->has_box)
		put_rule(g, to);
	if (page->view.options->has_no_header)
		return;
	lull_str_puts(to, lull_term_colour(LULL_COLOUR_BOLD, g->has_colour));
	put_line(g, page, -1);
	lull_str_puts(to, lull_term_colour(LULL_COLOUR_NONE, g->has_colour));
	put_rule(g, to);
}

static void begin_column(struct lull_out_page *page)
{
	begin_with(page, &column_look);
}

static void begin_table(struct lull_out_page *page)
{
	begin_with(page, &table_look);
}

static void put_rows(struct lull_out_page *page)
{
	for (size_t row = 0; row < page->view.n_rows; row++)
		put_line(page->state, page, (i64)row);
}

static void end(struct lull_out_page *page)
{
	struct grid *g = page->state;

	if (g->look->has_box)
		put_rule(g, &page->text);
	put_left_out(g, page);
	lull_str_release(&g->cell);
	free(g->widths);
	free(g);
}

const struct lull_out_format lull_out_format_column = {
	.name = "column",
	.summary = "aligned text",
	.args = "nohdr nolimit nofmt WIDTH",
	.begin = begin_column,
	.rows = put_rows,
	.end = end,
};

const struct lull_out_format lull_out_format_table = {
	.name = "table",
	.summary = "aligned text in boxes",
	.args = "nohdr nolimit nofmt WIDTH",
	.begin = begin_table,
	.rows = put_rows,
	.end = end,
};
