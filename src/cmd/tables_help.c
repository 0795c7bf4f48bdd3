#include "cmd/tables_help.h"

#include <string.h>

#include "text/out.h"
#include "text/term.h"
#include "report/report.h"

/* Columns before a summary: two blanks, the longest name, two blanks. */
#define REPORT_INDENT 26
#define FORMAT_INDENT 10

int lull_tables_unknown(const struct lull_tables *tables, const char *name, const char *nearest,
			struct lull_err *err)
{
	if (nearest)
		return lull_fail(err, LULL_E_USAGE, "no %s %s; did you mean %s?", tables->noun,
				 name, nearest);
	return lull_fail(err, LULL_E_USAGE, "no %s %s; --%s lists them", tables->noun, name,
			 tables->help_option);
}

static void list(const struct lull_tables *tables, FILE *to)
{
	for (size_t i = 0; tables->list[i]; i++) {
		fprintf(to, "  %-*s", REPORT_INDENT - 2, tables->list[i]->name);
		lull_term_wrap(to, tables->list[i]->summary, REPORT_INDENT, lull_term_width(to));
	}
	fprintf(to, "\n--%s=NAME describes one, --%s=ALL all of them.\n", tables->help_option,
		tables->help_option);
}

static void describe(FILE *to, const struct lull_report *report)
{
	int width = lull_term_width(to);

	fprintf(to, "%s -- %s\n\n  ", report->name, report->display);
	lull_term_wrap(to, report->help, 2, width);
	if (report->args)
		fprintf(to, "\n  Arguments (%s:ARGUMENT): %s\n", report->name, report->args);
	fputc('\n', to);
	for (size_t i = 0; i < report->n_columns; i++) {
		fprintf(to, "  %-*s", REPORT_INDENT - 2, report->columns[i].name);
		lull_term_wrap(to, report->columns[i].doc, REPORT_INDENT, width);
	}
}

int lull_tables_help(const struct lull_tables *tables, FILE *to, const char *name,
		     struct lull_err *err)
{
	const char *nearest;
	const struct lull_report *report;

	if (!*name) {
		list(tables, to);
		return LULL_OK;
	}
	if (!strcmp(name, "ALL")) {
		for (size_t i = 0; tables->list[i]; i++) {
			if (i)
				fputc('\n', to);
			describe(to, tables->list[i]);
		}
		return LULL_OK;
	}
	report = lull_report_find(tables->list, name, &nearest);
	if (!report)
		return lull_tables_unknown(tables, name, nearest, err);
	describe(to, report);
	return LULL_OK;
}

int lull_tables_help_formats(FILE *to, const char *name, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	bool is_all = !*name || !strcmp(name, "ALL");

	if (!is_all && lull_out_options_parse(&options, name, err))
		return err->code;
	for (int i = 0; lull_out_format_names[i]; i++) {
		const char *args = lull_out_format_args(i);

		if (!is_all && i != options.format)
			continue;
		fprintf(to, "  %-*s%s%s%s\n", FORMAT_INDENT - 2, lull_out_format_names[i],
			lull_out_format_summary(i), *args ? "; arguments: " : "", args);
	}
	return LULL_OK;
}
