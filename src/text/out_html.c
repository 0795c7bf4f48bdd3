/*
 * hdoc and htable: a page for a browser, and only its table, for another page.
 *
 * Cells are formatted as people read them. The page needs nothing but itself: its few lines of
 * style are inside.
 */
#include "text/out_int.h"

static const char style[] =
	"body { font: 14px system-ui, sans-serif; margin: 2em; }\n"
	"table { border-collapse: collapse; }\n"
	"th, td { padding: 0.2em 0.8em; border-bottom: 1px solid #ddd; text-align: left; }\n"
	"td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }\n";

static void put_text(struct lull_str *to, const char *text, size_t len)
{
	static const struct {
		char c;
		const char *as;
	} escapes[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" } };

	for (size_t i = 0; i < len; i++) {
		const char *as = NULL;

		for (size_t e = 0; e < LULL_COUNT_OF(escapes); e++)
			as = text[i] == escapes[e].c ? escapes[e].as : as;
		if (as)
			lull_str_puts(to, as);
		else
			lull_str_add(to, &text[i], 1);
	}
}

/* Row -1 is the header. */
static void put_row(struct lull_out_page *page, i64 row)
{
	const struct lull_out_view *view = &page->view;
	const char *tag = row < 0 ? "th" : "td";
	struct lull_str text = LULL_STR_INIT;

	lull_str_puts(&page->text, "<tr>");
	for (size_t c = 0; c < view->out->n_columns; c++) {
		bool is_number = view->out->columns[c].kind != LULL_OUT_TEXT;

		lull_str_clear(&text);
		if (row < 0)
			lull_out_format_header(&text, view, c, view->options->is_human);
		else
			lull_out_format_nice(&text, view, (size_t)row, c);
		lull_str_addf(&page->text, "<%s%s>", tag, is_number ? " class=\"number\"" : "");
		put_text(&page->text, lull_str_text(&text), text.len);
		lull_str_addf(&page->text, "</%s>", tag);
	}
	lull_str_puts(&page->text, "</tr>\n");
	lull_str_release(&text);
}

static void put_rows(struct lull_out_page *page)
{
	for (size_t row = 0; row < page->view.n_rows; row++)
		put_row(page, (i64)row);
}

static void begin_table(struct lull_out_page *page)
{
	lull_str_puts(&page->text, "<table>\n");
	if (!page->view.options->has_no_header)
		put_row(page, -1);
}

static void end_table(struct lull_out_page *page)
{
	lull_str_puts(&page->text, "</table>\n");
}

static void begin_doc(struct lull_out_page *page)
{
	const struct lull_out_options *options = page->view.options;
	const char *title = options->title ? options->title : "lull";
	struct lull_str *to = &page->text;

	lull_str_puts(to, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>");
	put_text(to, title, lull_out_arg_len(title));
	lull_str_addf(to, "</title>\n<style>\n%s</style>\n", style);
	if (options->css) {
		lull_str_puts(to, "<link rel=\"stylesheet\" href=\"");
		put_text(to, options->css, lull_out_arg_len(options->css));
		lull_str_puts(to, "\">\n");
	}
	lull_str_puts(to, "</head>\n<body>\n<h1>");
	put_text(to, title, lull_out_arg_len(title));
	lull_str_puts(to, "</h1>\n");
	begin_table(page);
}

static void end_doc(struct lull_out_page *page)
{
	end_table(page);
	lull_str_puts(&page->text, "</body>\n</html>\n");
}

const struct lull_out_format lull_out_format_hdoc = {
	.name = "hdoc",
	.summary = "HTML page",
	.args = "nohdr nofmt title= css=",
	.begin = begin_doc,
	.rows = put_rows,
	.end = end_doc,
};

const struct lull_out_format lull_out_format_htable = {
	.name = "htable",
	.summary = "HTML table without a page",
	.args = "nohdr nofmt",
	.begin = begin_table,
	.rows = put_rows,
	.end = end_table,
};
