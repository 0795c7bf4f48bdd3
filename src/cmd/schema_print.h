/*
 * schema_print - tables and columns, for people and for the manual.
 */
#ifndef LULL_CMD_SCHEMA_PRINT_H
#define LULL_CMD_SCHEMA_PRINT_H

#include <stdio.h>

#include "base/err.h"
#include "trace/tables.h"

/* Print `n` tables with their columns as aligned text. LULL_E_IO if the stream fails. */
int lull_schema_print(const struct lull_table_desc *tables, size_t n, FILE *to,
		      struct lull_err *err);

/* Print them as Markdown: the part of lull-report(5) that is made from schema.def. */
void lull_schema_print_markdown(const struct lull_table_desc *tables, size_t n, FILE *to);

#endif
