/*
 * hdoc and htable: a page that a browser opens, and the bare table for somebody else's page.
 *
 * Cells are formatted as people read them. The page needs nothing but itself: its few lines of
 * style are inside.
 */
#include "base/out_int.h"

static const char style[] =
	"body { font: 14px system-ui, sans-serif; margin: 2em; }\n"
	"table { border-collapse: collapse; }\n"
	"th, td { padding: 0.2em 0.8em; border-bottom: 1px solid #ddd; text-align: left; }\n"
	"td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }\n";

static void put_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", to);
		else if (*text == '<')
			fputs("&lt;", to);
		else if (*text == '>')
			fputs("&gt;", to);
		else if (*text == '"')
			fputs("&quot;", to);
		else
			fputc(*text, to);
	}
}

/* Row -1 is the header. */
static void put_row(const struct lull_out_view *view, FILE *to, i64 row)
{
	const char *tag = row < 0 ? "th" : "td";
	struct lull_str text = LULL_STR_INIT;

	fputs("<tr>", to);
	for (size_t c = 0; c < view->out->n_columns; c++) {
		bool is_number = view->out->columns[c].kind != LULL_OUT_TEXT;

		lull_str_clear(&text);
		if (row < 0)
			lull_out_format_header(&text, view, c, view->options->is_human);
		else
			lull_out_format_nice(&text, view, (size_t)row, c);
		fprintf(to, "<%s%s>", tag, is_number ? " class=\"number\"" : "");
		put_text(to, lull_str_text(&text));
		fprintf(to, "</%s>", tag);
	}
	fputs("</tr>\n", to);
	lull_str_release(&text);
}

static void write_htable(const struct lull_out_view *view, FILE *to)
{
	fputs("<table>\n", to);
	for (i64 row = view->options->has_no_header ? 0 : -1; row < (i64)view->n_rows; row++)
		put_row(view, to, row);
	fputs("</table>\n", to);
}

static void write_hdoc(const struct lull_out_view *view, FILE *to)
{
	const char *title = view->options->title ? view->options->title : "lull";

	fputs("<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>", to);
	put_text(to, title);
	fprintf(to, "</title>\n<style>\n%s</style>\n", style);
	fputs("</head>\n<body>\n<h1>", to);
	put_text(to, title);
	fputs("</h1>\n", to);
	write_htable(view, to);
	fputs("</body>\n</html>\n", to);
}

const struct lull_out_format lull_out_format_hdoc = {
	.name = "hdoc",
	.summary = "page for a browser",
	.args = "nohdr nofmt title=",
	.write = write_hdoc,
};

const struct lull_out_format lull_out_format_htable = {
	.name = "htable",
	.summary = "bare HTML table",
	.args = "nohdr nofmt",
	.write = write_htable,
};
