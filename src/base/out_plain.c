/*
 * csv and tsv: one line per row, no thousands separators, for other programs.
 *
 * csv quotes a field that holds a comma, a quote or a line break, and doubles the quotes in it (RFC
 * 4180, but with "\n" at the end of a line, as every tool on Linux expects). tsv has no quotes:
 * tabs and line breaks inside a field become blanks, or tabs "\t" if the options want escapes.
 */
#include "base/out_int.h"

#include <string.h>

static bool needs_quotes(const char *text, size_t len)
{
	return memchr(text, ',', len) || memchr(text, '"', len) || memchr(text, '\n', len) ||
	       memchr(text, '\r', len);
}

/* Append a text of csv, in quotes if it needs them. */
static void put_csv(struct lull_str *line, const char *text, size_t len)
{
	char *at;

	if (!needs_quotes(text, len)) {
		lull_str_add(line, text, len);
		return;
	}
	at = lull_str_room(line, 2 * len + 2);
	*at++ = '"';
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			*at++ = '"';
		*at++ = text[i];
	}
	*at++ = '"';
	lull_str_take(line, at);
}

/* Append a text of tsv: tabs and line breaks become blanks, or tabs "\t". */
static void put_tsv(struct lull_str *line, const char *text, size_t len, bool has_escapes)
{
	char *at = lull_str_room(line, 2 * len);

	for (size_t i = 0; i < len; i++) {
		bool is_tab = text[i] == '\t', is_break = text[i] == '\r' || text[i] == '\n';

		if (is_tab && has_escapes)
			*at++ = '\\';
		*at++ = is_tab && has_escapes ? 't' : is_tab || is_break ? ' ' : text[i];
	}
	lull_str_take(line, at);
}

static void put_text(struct lull_out_page *page, const char *text, size_t len, char separator)
{
	if (separator == ',')
		put_csv(&page->text, text, len);
	else
		put_tsv(&page->text, text, len, page->view.options->has_escapes);
}

static void put_header(struct lull_out_page *page, char separator)
{
	const struct lull_out_view *view = &page->view;
	struct lull_str header = LULL_STR_INIT;

	for (size_t c = 0; c < view->out->n_columns; c++) {
		if (c)
			lull_str_add(&page->text, &separator, 1);
		lull_str_clear(&header);
		lull_out_format_header(&header, view, c, false);
		put_text(page, header.at, header.len, separator);
	}
	lull_str_add(&page->text, "\n", 1);
	lull_str_release(&header);
}

static void put_line(struct lull_out_page *page, size_t row, char separator)
{
	const struct lull_out_view *view = &page->view;
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, 0);
	struct lull_str *line = &page->text;

	for (size_t c = 0; c < view->out->n_columns; c++, cell++) {
		if (c)
			lull_str_add(line, &separator, 1);
		if (cell->kind == LULL_OUT_CELL_TEXT)
			put_text(page, lull_out_cell_text(view->out, cell), cell->text_len,
				 separator);
		else if (cell->kind != LULL_OUT_CELL_EMPTY)
			lull_out_format_plain(line, view, row, c);
	}
	lull_str_add(line, "\n", 1);
}

static char separator_of(const struct lull_out_page *page)
{
	return page->view.options->format == LULL_OUT_FORMAT_csv ? ',' : '\t';
}

static void begin(struct lull_out_page *page)
{
	if (!page->view.options->has_no_header)
		put_header(page, separator_of(page));
}

static void put_rows(struct lull_out_page *page)
{
	for (size_t row = 0; row < page->view.n_rows; row++)
		put_line(page, row, separator_of(page));
}

static void end(struct lull_out_page *page)
{
	(void)page;
}

const struct lull_out_format lull_out_format_csv = {
	.name = "csv",
	.summary = "comma-separated values for other programs",
	.args = "nohdr",
	.begin = begin,
	.rows = put_rows,
	.end = end,
};

const struct lull_out_format lull_out_format_tsv = {
	.name = "tsv",
	.summary = "tab-separated values for other programs",
	.args = "nohdr esc",
	.begin = begin,
	.rows = put_rows,
	.end = end,
};
