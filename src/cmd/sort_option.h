/*
 * sort_option - what --sort means for a table: one of its columns, or a sort key of its own.
 */
#ifndef LULL_CMD_SORT_OPTION_H
#define LULL_CMD_SORT_OPTION_H

#include "base/err.h"
#include "report/report.h"
#include "text/out.h"

/*
 * Let rows be sorted by "COLUMN" or "COLUMN:asc". Case, blanks, signs and units of a column's name
 * do not matter, and the start of a name is enough if no other column starts so. If the report has
 * no such column but sort keys of its own (sort=), *key becomes that key, else NULL; borrowed from
 * `text`. Otherwise LULL_E_USAGE with the columns that there are.
 */
int lull_sort_option_set(struct lull_out_options *out, const struct lull_report *report,
			 const char *text, const char **key, struct lull_err *err);

#endif
