/*
 * tables_help - what `lull stats` and `lull analyze` say about their tables and formats.
 */
#ifndef LULL_CMD_TABLES_HELP_H
#define LULL_CMD_TABLES_HELP_H

#include <stdio.h>

#include "base/err.h"
#include "cmd/table_command.h"

/* Fail because there is no such report; `nearest` may be NULL. */
int lull_tables_unknown(const struct lull_tables *tables, const char *name, const char *nearest,
			struct lull_err *err);

/* List the reports ("" for `name`), describe one, or all ("ALL"). */
int lull_tables_help(const struct lull_tables *tables, FILE *to, const char *name,
		     struct lull_err *err);

/* List the formats with their arguments: all, or one. */
int lull_tables_help_formats(FILE *to, const char *name, struct lull_err *err);

#endif
