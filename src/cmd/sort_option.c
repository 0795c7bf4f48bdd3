#include "cmd/sort_option.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

#define MAX_NAME 64

/* "Total Time (ns)" becomes "totaltime", and so does "total_time". */
static void reduce(char to[MAX_NAME], const char *name, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && name[i] != '(' && n + 1 < MAX_NAME; i++)
		if (isalnum((unsigned char)name[i]))
			to[n++] = (char)tolower((unsigned char)name[i]);
	to[n] = 0;
}

/* The column of this name, or the only one that starts so; n_columns if there is none. */
static size_t find(const struct lull_report *report, const char *wanted)
{
	size_t found = report->n_columns, n_found = 0;

	for (size_t i = 0; *wanted && i < report->n_columns; i++) {
		char name[MAX_NAME];

		reduce(name, report->columns[i].name, strlen(report->columns[i].name));
		/* A share may have the name of what it is a share of. */
		if (!strcmp(name, wanted) && report->columns[i].kind != LULL_OUT_PERCENT)
			return i;
		if (!strncmp(name, wanted, strlen(wanted))) {
			found = i;
			n_found++;
		}
	}
	return n_found == 1 ? found : report->n_columns;
}

static int refuse(const struct lull_report *report, const char *text, struct lull_err *err)
{
	struct lull_str names = LULL_STR_INIT;

	for (size_t i = 0; i < report->n_columns; i++)
		lull_str_addf(&names, "%s%s", i ? ", " : "", report->columns[i].name);
	lull_fail(err, LULL_E_USAGE, "%s has no column %s to sort by, only: %s", report->name, text,
		  lull_str_text(&names));
	lull_str_release(&names);
	return err->code;
}

int lull_sort_option_set(struct lull_out_options *out, const struct lull_report *report,
			 const char *text, const char **key, struct lull_err *err)
{
	size_t len = strcspn(text, ":"), column;
	bool is_ascending = !strcmp(text + len, ":asc");
	char wanted[MAX_NAME];

	*key = NULL;
	if (text[len] && !is_ascending && strcmp(text + len, ":desc"))
		return lull_fail(err, LULL_E_USAGE, "%s: the order is asc or desc", text);
	reduce(wanted, text, len);
	column = find(report, wanted);
	if (column < report->n_columns) {
		out->sort_ix = (int)column;
		out->kept_ix = 1 + (int)column;
		out->is_ascending = is_ascending;
		return LULL_OK;
	}
	if (report->args && strstr(report->args, "sort=") && !text[len]) {
		*key = text;
		return LULL_OK;
	}
	return refuse(report, text, err);
}
