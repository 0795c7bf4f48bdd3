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

/* Put quotes around what was appended to `line` at `from`, if it needs them. */
static void quote(struct lull_str *line, size_t from)
{
	struct lull_str field = LULL_STR_INIT;

	if (!needs_quotes(line->at + from, line->len - from))
		return;
	lull_str_add(&field, line->at + from, line->len - from);
	line->len = from;
	lull_str_add(line, "\"", 1);
	for (const char *at = field.at; at < field.at + field.len;) {
		const char *end = memchr(at, '"', (size_t)(field.at + field.len - at));
		size_t len = (size_t)((end ? end + 1 : field.at + field.len) - at);

		lull_str_add(line, at, len);
		if (end)
			lull_str_add(line, "\"", 1);
		at += len;
	}
	lull_str_add(line, "\"", 1);
	lull_str_release(&field);
}

/* Tabs and line breaks that were appended at `from` become blanks, or tabs "\t". */
static void blank(struct lull_str *line, size_t from, bool has_escapes)
{
	struct lull_str field = LULL_STR_INIT;
	size_t len = line->len - from;

	if (!len || (!memchr(line->at + from, '\t', len) && !memchr(line->at + from, '\n', len) &&
		     !memchr(line->at + from, '\r', len)))
		return;
	lull_str_add(&field, line->at + from, len);
	line->len = from;
	for (size_t i = 0; i < len; i++) {
		bool is_tab = field.at[i] == '\t', is_break = strchr("\r\n", field.at[i]);

		if (is_tab && has_escapes)
			lull_str_puts(line, "\\t");
		else
			lull_str_add(line, is_tab || is_break ? " " : &field.at[i], 1);
	}
	lull_str_release(&field);
}

/* Row -1 is the header. */
static void put_line(struct lull_out_page *page, i64 row, char separator)
{
	const struct lull_out_view *view = &page->view;
	struct lull_str *line = &page->text;

	for (size_t c = 0; c < view->out->n_columns; c++) {
		bool is_text = row < 0 ||
			       lull_out_cell_get(view, (size_t)row, c)->kind == LULL_OUT_CELL_TEXT;
		size_t from;

		if (c)
			lull_str_add(line, &separator, 1);
		from = line->len;
		if (row < 0)
			lull_out_format_header(line, view, c, false);
		else
			lull_out_format_plain(line, view, (size_t)row, c);
		if (is_text && separator == ',')
			quote(line, from);
		else if (is_text)
			blank(line, from, view->options->has_escapes);
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
		put_line(page, -1, separator_of(page));
}

static void put_rows(struct lull_out_page *page)
{
	for (size_t row = 0; row < page->view.n_rows; row++)
		put_line(page, (i64)row, separator_of(page));
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
