/*
 * gate_sql - numbers for a gate from a query.
 */
#ifndef LULL_CMD_GATE_SQL_H
#define LULL_CMD_GATE_SQL_H

#include "base/err.h"
#include "compare/decide.h"
#include "trace/reader.h"

/*
 * Add the number in the first column of each row that the query gives; LULL_E_USAGE for SQL that is
 * wrong, and for a value that is no number.
 */
int lull_gate_query(struct lull_reader *r, const char *sql, struct lull_samples *to,
		    struct lull_err *err);

#endif
