/*
 * csv and tsv: one line per row, no thousands separators, for other programs.
 *
 * csv quotes a field that holds a comma, a quote or a line break, and doubles the quotes in it (RFC
 * 4180, but with "\n" at the end of a line, as every tool on Linux expects). tsv has no quotes:
 * tabs and line breaks inside a field become blanks, or tabs "\t" if the options want escapes.
 */
#include "text/out_int.h"

#include <string.h>

static bool needs_quotes(const char *text, size_t len)
{
	return memchr(text, ',', len) || memchr(text, '"', len) || memchr(text, '\n', len) ||
	       memchr(text, '\r', len);
}

/* Append a text of csv, in quotes if it needs them. */
static void put_csv(struct lull_str *line, const struct lull_out_options *options, const char *text,
		    size_t len)
{
	char *at;

	(void)options;
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
static void put_tsv(struct lull_str *line, const struct lull_out_options *options, const char *text,
		    size_t len)
{
	bool has_escapes = options->has_escapes;
	char *at = lull_str_room(line, 2 * len);

	for (size_t i = 0; i < len; i++) {
		bool is_tab = text[i] == '\t', is_break = text[i] == '\r' || text[i] == '\n';

		if (is_tab && has_escapes)
			*at++ = '\\';
		*at++ = is_tab && has_escapes ? 't' : is_tab || is_break ? ' ' : text[i];
	}
	lull_str_take(line, at);
}

static void put_header(struct lull_out_page *page, const struct lull_out_format *format)
{
	const struct lull_out_view *view = &page->view;
	struct lull_str header = LULL_STR_INIT;

	for (size_t c = 0; c < view->out->n_columns; c++) {
		if (c)
			lull_str_add(&page->text, &format->separator, 1);
		lull_str_clear(&header);
		lull_out_format_header(&header, view, c, false);
		format->field(&page->text, view->options, header.at, header.len);
	}
	lull_str_add(&page->text, "\n", 1);
	lull_str_release(&header);
}

static void put_line(struct lull_out_page *page, size_t row, const struct lull_out_format *format)
{
	const struct lull_out_view *view = &page->view;
	const struct lull_out_cell *cell = lull_out_cell_get(view, row, 0);
	struct lull_str *line = &page->text;

	for (size_t c = 0; c < view->out->n_columns; c++, cell++) {
		if (c)
			lull_str_add(line, &format->separator, 1);
		if (cell->kind == LULL_OUT_CELL_TEXT)
			format->field(line, view->options, lull_out_cell_text(view->out, cell),
				      cell->text_len);
		else
			lull_out_format_number(line, view->options, &view->out->columns[c], cell);
	}
	lull_str_add(line, "\n", 1);
}

static void begin(struct lull_out_page *page)
{
	if (!page->view.options->has_no_header)
		put_header(page, lull_out_page_format(page));
}

static void put_rows(struct lull_out_page *page)
{
	for (size_t row = 0; row < page->view.n_rows; row++)
		put_line(page, row, lull_out_page_format(page));
}

static void end(struct lull_out_page *page)
{
	(void)page;
}

const struct lull_out_format lull_out_format_csv = {
	.name = "csv",
	.summary = "comma-separated values for other programs",
	.args = "nohdr",
	.field = put_csv,
	.separator = ',',
	.begin = begin,
	.rows = put_rows,
	.end = end,
};

const struct lull_out_format lull_out_format_tsv = {
	.name = "tsv",
	.summary = "tab-separated values for other programs",
	.args = "nohdr esc",
	.field = put_tsv,
	.separator = '\t',
	.begin = begin,
	.rows = put_rows,
	.end = end,
};
