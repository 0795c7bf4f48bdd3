/*
 * csv and tsv: one line per row, no thousands separators, for other programs.
 *
 * csv quotes a field that holds a comma, a quote or a line break, and doubles the quotes in it (RFC
 * 4180, but with "\n" at the end of a line, as every tool on Linux expects). tsv has no quotes:
 * tabs and line breaks inside a field become blanks, or tabs "\t" if the options want escapes.
 */
#include "base/out_int.h"

#include <string.h>

static void put_csv(FILE *to, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static void put_tsv(FILE *to, const char *text, bool has_escapes)
{
	for (; *text; text++) {
		if (*text == '\t' && has_escapes)
			fputs("\\t", to);
		else
			fputc(strchr("\t\r\n", *text) ? ' ' : *text, to);
	}
}

/* Row -1 is the header. */
static void put_line(const struct lull_out_view *view, FILE *to, i64 row, char separator)
{
	struct lull_str text = LULL_STR_INIT;

	for (size_t c = 0; c < view->out->n_columns; c++) {
		lull_str_clear(&text);
		if (row < 0)
			lull_out_format_header(&text, view, c, false);
		else
			lull_out_format_plain(&text, view, (size_t)row, c);
		if (c)
			fputc(separator, to);
		if (separator == ',')
			put_csv(to, lull_str_text(&text));
		else
			put_tsv(to, lull_str_text(&text), view->options->has_escapes);
	}
	fputc('\n', to);
	lull_str_release(&text);
}

static void write_lines(const struct lull_out_view *view, FILE *to, char separator)
{
	for (i64 row = view->options->has_no_header ? 0 : -1; row < (i64)view->n_rows; row++)
		put_line(view, to, row, separator);
}

static void write_csv(const struct lull_out_view *view, FILE *to)
{
	write_lines(view, to, ',');
}

static void write_tsv(const struct lull_out_view *view, FILE *to)
{
	write_lines(view, to, '\t');
}

const struct lull_out_format lull_out_format_csv = {
	.name = "csv",
	.summary = "comma-separated values for other programs",
	.args = "nohdr",
	.write = write_csv,
};

const struct lull_out_format lull_out_format_tsv = {
	.name = "tsv",
	.summary = "tab-separated values for other programs",
	.args = "nohdr esc",
	.write = write_tsv,
};
