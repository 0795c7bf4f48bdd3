/*
 * column and table: aligned text for people; table draws boxes.
 *
 * All cells are turned into text first, because a column is as wide as its widest cell. On a
 * terminal that is too narrow the widest text columns give way, down to MIN_TEXT_COLUMNS, by losing
 * their middle; if that is not enough, spare columns are left out, the last first, and named below
 * the table. Numbers are never cut. Elsewhere nothing is cut, so that a piped table can be
 * searched.
 */
#include "base/out_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/term.h"

#define MIN_TEXT_COLUMNS 16

/* What lies left of the first cell, between cells, and right of the last. */
struct look {
	const char *left, *between, *right;
	bool has_box;
};

static const struct look column_look = { " ", "  ", "", false };
static const struct look table_look = { "| ", " | ", " |", true };

struct grid {
	const struct lull_out_view *view;
	const struct look *look;
	char **texts;	/* the header's, then n_columns for each row */
	size_t *widths; /* of each column, LEFT_OUT for one that is not shown */
	FILE *to;
};

#define LEFT_OUT 0

static bool is_right(const struct lull_out_column *column)
{
	if (column->align == LULL_OUT_AUTO)
		return column->kind != LULL_OUT_TEXT;
	return column->align == LULL_OUT_RIGHT;
}

/* Control characters would break the lines apart or worse, command the terminal: they become
 * blanks. */
static char *printable_dup(const struct lull_str *text)
{
	char *copy = lull_strdup(lull_str_text(text));

	for (char *c = copy; *c; c++) {
		if ((u8)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	}
	return copy;
}

static void fill(struct grid *g)
{
	const struct lull_out *out = g->view->out;
	bool is_human = g->view->options->is_human;
	struct lull_str text = LULL_STR_INIT;

	for (size_t line = 0; line <= g->view->n_rows; line++) {
		for (size_t c = 0; c < out->n_columns; c++) {
			size_t width;
			char *copy;

			lull_str_clear(&text);
			if (line)
				lull_out_format_nice(&text, g->view, line - 1, c);
			else
				lull_out_format_header(&text, g->view, c, is_human);
			copy = printable_dup(&text);
			width = lull_term_columns(copy);
			if (width > g->widths[c])
				g->widths[c] = width;
			g->texts[line * out->n_columns + c] = copy;
		}
	}
	lull_str_release(&text);
}

/* The first column that is shown at or behind `c`, or n_columns. */
static size_t shown(const struct grid *g, size_t c)
{
	while (c < g->view->out->n_columns && g->widths[c] == LEFT_OUT)
		c++;
	return c;
}

/* What the table takes when no text column is wider than `text_limit`. */
static size_t total_width(const struct grid *g, size_t text_limit)
{
	const struct lull_out *out = g->view->out;
	size_t total = strlen(g->look->left) + strlen(g->look->right), between = 0;

	for (size_t c = shown(g, 0); c < out->n_columns; c = shown(g, c + 1)) {
		bool is_wide = out->columns[c].kind == LULL_OUT_TEXT && g->widths[c] > text_limit;

		total += between + (is_wide ? text_limit : g->widths[c]);
		between = strlen(g->look->between);
	}
	return total;
}

/* The widest text column that can still give way, or n_columns. */
static size_t widest_text(const struct grid *g)
{
	size_t best = g->view->out->n_columns, best_width = MIN_TEXT_COLUMNS;

	for (size_t c = 0; c < g->view->out->n_columns; c++) {
		if (g->view->out->columns[c].kind == LULL_OUT_TEXT && g->widths[c] > best_width) {
			best = c;
			best_width = g->widths[c];
		}
	}
	return best;
}

/* The last spare column that is still shown, or n_columns. */
static size_t last_spare(const struct grid *g)
{
	for (size_t c = g->view->out->n_columns; c-- > 0;) {
		if (g->view->out->columns[c].is_spare && g->widths[c] != LEFT_OUT)
			return c;
	}
	return g->view->out->n_columns;
}

/* Columns of the screen the table may take, 0 for any number. */
static size_t width_limit(const struct grid *g)
{
	const struct lull_out_options *options = g->view->options;

	if (options->is_never_cut)
		return 0;
	if (options->width)
		return (size_t)options->width;
	return lull_term_is_tty(g->to) ? (size_t)lull_term_width(g->to) : 0;
}

/* Columns go only if the table would not fit with its texts at their shortest. */
static void fit(struct grid *g)
{
	size_t limit = width_limit(g), n = g->view->out->n_columns, c;

	if (!limit)
		return;
	while (total_width(g, MIN_TEXT_COLUMNS) > limit && (c = last_spare(g)) < n)
		g->widths[c] = LEFT_OUT;
	while (total_width(g, SIZE_MAX) > limit && (c = widest_text(g)) < n)
		g->widths[c]--;
}

/* Blanks behind the last cell of a line are left out unless a box has to be closed. */
static void put_cell(const struct grid *g, const char *text, size_t c, bool is_last)
{
	const struct lull_out *out = g->view->out;
	size_t cap = strlen(text) + 4, columns = lull_term_columns(text);
	char *cut = lull_alloc(cap, 1);
	int pad;

	lull_term_shorten(cut, cap, text, g->widths[c]);
	columns = columns > g->widths[c] ? g->widths[c] : columns;
	pad = (int)(g->widths[c] - columns);
	if (is_right(&out->columns[c]))
		fprintf(g->to, "%*s%s", pad, "", cut);
	else if (!is_last || g->look->has_box)
		fprintf(g->to, "%s%*s", cut, pad, "");
	else
		fputs(cut, g->to);
	free(cut);
}

/* Where a line ends: behind its last cell that is not empty, or the last one if a box is drawn. */
static size_t end_of(const struct grid *g, size_t line)
{
	size_t n = g->view->out->n_columns, end = n;

	while (!g->look->has_box && end > 1 && !*g->texts[line * n + end - 1])
		end--;
	return end;
}

static void put_line(const struct grid *g, size_t line)
{
	size_t n = g->view->out->n_columns, end = end_of(g, line);
	const char *before = g->look->left;

	for (size_t c = shown(g, 0); c < end; c = shown(g, c + 1)) {
		fputs(before, g->to);
		put_cell(g, g->texts[line * n + c], c, shown(g, c + 1) >= end);
		before = g->look->between;
	}
	fprintf(g->to, "%s\n", g->look->right);
}

static void put_rule(const struct grid *g)
{
	bool has_box = g->look->has_box;
	const char *before = has_box ? "+" : " ";

	for (size_t c = shown(g, 0); c < g->view->out->n_columns; c = shown(g, c + 1)) {
		size_t dashes = g->widths[c] + (has_box ? 2 : 0);

		fputs(before, g->to);
		while (dashes--)
			fputc('-', g->to);
		before = has_box ? "+" : "  ";
	}
	fputs(has_box ? "+\n" : "\n", g->to);
}

/* Whoever reads a table must know that it is not the whole of it. */
static void put_left_out(const struct grid *g)
{
	size_t n_more = lull_out_len(g->view->out) - g->view->n_rows;
	const char *before = " not shown, the terminal is too narrow: ";

	if (n_more)
		fprintf(g->to, " ... %s more row%s\n", lull_format_grouped((i64)n_more).text,
			n_more == 1 ? "" : "s");
	for (size_t c = 0; c < g->view->out->n_columns; c++) {
		if (g->widths[c] != LEFT_OUT)
			continue;
		fprintf(g->to, "%s%s", before, g->view->out->columns[c].name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', g->to);
}

static void put_grid(const struct grid *g)
{
	bool has_box = g->look->has_box;

	if (has_box)
		put_rule(g);
	if (!g->view->options->has_no_header) {
		put_line(g, 0);
		put_rule(g);
	}
	for (size_t line = 1; line <= g->view->n_rows; line++)
		put_line(g, line);
	if (has_box)
		put_rule(g);
	put_left_out(g);
}

static void write_with(const struct lull_out_view *view, const struct look *look, FILE *to)
{
	size_t n_texts = (view->n_rows + 1) * view->out->n_columns;
	struct grid g = { .view = view, .look = look, .to = to };

	g.texts = lull_alloc(n_texts, sizeof(*g.texts));
	g.widths = lull_alloc(view->out->n_columns, sizeof(*g.widths));
	fill(&g);
	fit(&g);
	put_grid(&g);
	for (size_t i = 0; i < n_texts; i++)
		free(g.texts[i]);
	free(g.texts);
	free(g.widths);
}

static void write_column(const struct lull_out_view *view, FILE *to)
{
	write_with(view, &column_look, to);
}

static void write_table(const struct lull_out_view *view, FILE *to)
{
	write_with(view, &table_look, to);
}

const struct lull_out_format lull_out_format_column = {
	.name = "column",
	.summary = "aligned text for people",
	.args = "nohdr nolimit nofmt",
	.write = write_column,
};

const struct lull_out_format lull_out_format_table = {
	.name = "table",
	.summary = "aligned text in boxes",
	.args = "nohdr nolimit nofmt",
	.write = write_table,
};
