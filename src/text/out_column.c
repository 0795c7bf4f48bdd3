/*
 * column and table: aligned text for people; table draws boxes.
 *
 * A column is as wide as its widest cell among the first rows. Kernels have their short names.
 * Texts get at most MAX_TEXT_COLUMNS, unless told otherwise, and lose what says least where they
 * are cut; different texts stay different (text/labels.h). On a terminal that is too narrow the
 * widest text columns give way, down to FAIR_TEXT_COLUMNS; if that is not enough, spare columns are
 * left out, the last first, and named below the table; then texts give way down to
 * MIN_TEXT_COLUMNS, and at last other columns go. Numbers are never cut. The column that rows are
 * sorted by, the first text that is not spare and what somebody asked for always stay.
 */
#include "text/out_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/labels.h"
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
	size_t *widths;		     /* of each column, LEFT_OUT for one that is not shown */
	size_t limit;		     /* columns of the screen, 0 for any number */
	int kept_ix;		     /* column that is never left out, or -1 */
	struct lull_labels **labels; /* of each column whose texts are not shown as they are */
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
	size_t width = 0;

	for (i64 row = -1; row < (i64)view->n_rows; row++) {
		size_t columns = lull_term_columns(text_of(g, view, row, c));

		width = columns > width ? columns : width;
	}
	return width;
}

/* Labels of the texts in view, which are all that is known of a stream. */
static struct lull_labels *new_labels(struct grid *g, const struct lull_out_view *view, size_t c)
{
	struct lull_labels *labels = lull_alloc(1, sizeof(*labels));
	char **texts = lull_alloc(view->n_rows, sizeof(*texts));

	for (size_t row = 0; row < view->n_rows; row++)
		texts[row] = lull_strdup(text_of(g, view, (i64)row, c));
	lull_labels_init(labels, view->out->columns[c].is_kernel);
	lull_labels_add(labels, (const char *const *)texts, view->n_rows);
	for (size_t row = 0; row < view->n_rows; row++)
		free(texts[row]);
	free(texts);
	return labels;
}

/* As wide as a column of texts wants to be; texts that are too long get labels. */
static size_t text_width(struct grid *g, const struct lull_out_view *view, size_t c)
{
	size_t header = lull_term_columns(text_of(g, view, -1, c)), width;

	if (view->options->is_never_cut)
		return natural_width(g, view, c);
	if (view->out->columns[c].is_kernel) {
		g->labels[c] = new_labels(g, view, c);
		width = lull_labels_width(g->labels[c]);
		return width > header ? width : header;
	}
	width = natural_width(g, view, c);
	return width > MAX_TEXT_COLUMNS ? MAX_TEXT_COLUMNS : width;
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

/* The column that says what a row is about: the first text that is not spare. */
static size_t name_column(const struct grid *g)
{
	size_t c = 0;

	while (c < g->out->n_columns &&
	       (g->out->columns[c].kind != LULL_OUT_TEXT || g->out->columns[c].is_spare))
		c++;
	return c;
}

/* Whether a column stays, however narrow the screen: what rows are about, and how they rank. */
static bool is_kept(const struct grid *g, size_t c)
{
	const struct lull_out_column *column = &g->out->columns[c];
	size_t len = strlen(column->name);

	return (int)c == g->kept_ix || c == name_column(g) || column->is_wanted ||
	       (column->is_kernel && !column->is_spare) ||
	       (!column->is_spare && len >= 3 && !strcmp(column->name + len - 3, "Med"));
}

/* The last column that is still shown and may go, or n_columns; spare ones first. */
static size_t last_to_go(const struct grid *g, bool are_spare)
{
	for (size_t c = g->out->n_columns; c-- > 0;) {
		if (g->out->columns[c].is_spare == are_spare && g->widths[c] != LEFT_OUT &&
		    !is_kept(g, c))
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
	while (total_width(g, FAIR_TEXT_COLUMNS) > g->limit && (c = last_to_go(g, true)) < n)
		g->widths[c] = LEFT_OUT;
	while (total_width(g, MIN_TEXT_COLUMNS) > g->limit && (c = last_to_go(g, false)) < n)
		g->widths[c] = LEFT_OUT;
	while (total_width(g, SIZE_MAX) > g->limit && (c = widest_text(g)) < n)
		g->widths[c]--;
}

/* Texts that are wider than their column get labels of its width. */
static void fit_labels(struct grid *g, const struct lull_out_view *view)
{
	for (size_t c = 0; c < g->out->n_columns; c++) {
		if (g->out->columns[c].kind != LULL_OUT_TEXT || g->widths[c] == LEFT_OUT ||
		    view->options->is_never_cut)
			continue;
		if (!g->labels[c])
			g->labels[c] = new_labels(g, view, c);
		lull_labels_fit(g->labels[c], g->widths[c]);
	}
}

/* Widths that were asked for are kept, whatever the screen. */
static void set_widths(struct grid *g, const struct lull_out_view *view)
{
	for (size_t c = 0; c < g->out->n_columns; c++) {
		int wanted = lull_out_width_of(view->options, c);

		if (wanted >= 0)
			g->widths[c] = (size_t)wanted;
		else if (view->out->columns[c].kind == LULL_OUT_TEXT)
			g->widths[c] = text_width(g, view, c);
		else
			g->widths[c] = natural_width(g, view, c);
	}
	if (!view->options->widths)
		fit(g);
	fit_labels(g, view);
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

/* A text as its column shows it. */
static const char *shown_text(struct grid *g, const char *text, i64 row, size_t c)
{
	if (row < 0 || !g->labels[c] || !*text)
		return text;
	return lull_labels_get(g->labels[c], text);
}

static void put_cell(struct grid *g, struct lull_out_page *page, i64 row, size_t c)
{
	const char *text = shown_text(g, text_of(g, &page->view, row, c), row, c);
	struct lull_str *to = &page->text;
	size_t columns = lull_term_columns(text);
	size_t blanks = columns < g->widths[c] ? g->widths[c] - columns : 0;

	if (is_right(&g->out->columns[c]))
		put_blanks(to, blanks);
	lull_str_puts(to, text);
	if (!is_right(&g->out->columns[c]))
		put_blanks(to, blanks);
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

/* The names of columns that are not shown, in lines that fit as well. */
static void put_hidden(const struct grid *g, struct lull_str *to)
{
	const char *before = " not shown, the terminal is too narrow: ";
	size_t at = 0, last = 0;

	for (size_t c = 0; c < g->out->n_columns; c++)
		last = g->widths[c] == LEFT_OUT ? c : last;
	for (size_t c = 0; c < g->out->n_columns; c++) {
		size_t columns = lull_term_columns(g->out->columns[c].name) + strlen(before);

		if (g->widths[c] != LEFT_OUT)
			continue;
		/* A comma follows all but the last. */
		if (at && g->limit && at + columns + (c != last) > g->limit) {
			lull_str_puts(to, ",\n ");
			before = " ";
			at = 0;
		}
		lull_str_addf(to, "%s%s", before, g->out->columns[c].name);
		at += columns;
		before = ", ";
	}
	if (at)
		lull_str_add(to, "\n", 1);
}

/* Whoever reads a table must know that it is not the whole of it. */
static void put_left_out(const struct grid *g, struct lull_out_page *page)
{
	struct lull_str *to = &page->text;

	lull_str_puts(to, lull_term_colour(LULL_COLOUR_DIM, g->has_colour));
	if (page->n_left_out)
		lull_str_addf(to, " ... %s more row%s\n",
			      lull_format_grouped((i64)page->n_left_out).text,
			      page->n_left_out == 1 ? "" : "s");
	if (!page->view.options->widths)
		put_hidden(g, to);
	lull_str_puts(to, lull_term_colour(LULL_COLOUR_NONE, g->has_colour));
}

/* ---- the formats ---- */

static void begin_with(struct lull_out_page *page, const struct look *look)
{
	struct grid *g = lull_alloc(1, sizeof(*g));
	struct lull_str *to = &page->text;

	*g = (struct grid){ .out = page->view.out, .look = look, .limit = width_limit(page) };
	g->kept_ix = page->view.options->sort_ix;
	if (g->kept_ix < 0)
		g->kept_ix = page->view.out->kept_ix ? page->view.out->kept_ix - 1
						     : page->view.options->kept_ix - 1;
	g->labels = lull_alloc(g->out->n_columns, sizeof(struct lull_labels *));
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
	for (size_t c = 0; c < g->out->n_columns; c++) {
		if (g->labels[c])
			lull_labels_release(g->labels[c]);
		free(g->labels[c]);
	}
	free(g->labels);
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
