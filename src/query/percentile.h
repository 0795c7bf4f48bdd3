/*
 * percentile - SQL functions that SQLite lacks: median(X) and percentile(X, P).
 *
 * Both are aggregates with the meaning that SQLite's own extension gives them: P is from 0 to 100,
 * between two values the result lies on the line between them, and nulls do not count. No value at
 * all gives null.
 */
#ifndef LULL_QUERY_PERCENTILE_H
#define LULL_QUERY_PERCENTILE_H

#include <sqlite3.h>

/* Add them to a connection; a code of SQLite. */
int lull_percentile_register(sqlite3 *db);

#endif
