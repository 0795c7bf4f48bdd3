/*
 * query - SQL on a report without conversion: SQLite's engine on the report's columns.
 *
 * What it gives:  the tables of an nsys export under their names (those that have rows), every
 *                 table of the report under its own, and readable ones (ours.def).
 * Safety:         read-only: SELECT, and pragmas that describe tables. No file is opened, no
 *                 extension loaded. A query ends at its time limit, when lull_query_stop() is
 *                 called, or when SQLite uses MAX_MEMORY.
 * Threads:        one at a time; lull_query_stop() may be called from a signal handler.
 */
#ifndef LULL_QUERY_QUERY_H
#define LULL_QUERY_QUERY_H

#include <sqlite3.h>
#include <stdio.h>

#include "base/err.h"
#include "text/out.h"
#include "base/types.h"
#include "model/span.h"
#include "trace/reader.h"

struct lull_query;

struct lull_query_limits {
	u64 timeout_ns; /* 0: none */
	u64 max_rows;	/* of a result; 0: all */
};

/* Make the tables of this report, which lives as long as the query. */
int lull_query_open(struct lull_query **q, struct lull_reader *r, struct lull_err *err);

/*
 * Of what happened, show only what lies in this time, edges included: before the first statement.
 * Rows that are no events (names, threads, devices) stay.
 */
void lull_query_window(struct lull_query *q, struct lull_span window);

/* Free everything. Accepts NULL. */
void lull_query_close(struct lull_query *q);

/*
 * Run all statements of `sql` and print the result of each. LULL_E_USAGE for SQL that is wrong,
 * with the place in it; LULL_E_IO for a result that was cut off by a limit, after its rows.
 */
int lull_query_run(struct lull_query *q, const char *sql, const struct lull_query_limits *limits,
		   const struct lull_out_options *options, FILE *to, struct lull_err *err);

/*
 * Call this some 20 times a second while a statement runs, in its thread: for those who cannot be
 * interrupted otherwise. NULL: nobody.
 */
void lull_query_watch(struct lull_query *q, void (*watch)(void));

/* End the statement that runs now; may be called from a signal handler. */
void lull_query_stop(struct lull_query *q);

/* Print the names of the tables with what they hold; `pattern` (NULL: all) is one of LIKE. */
void lull_query_list_tables(struct lull_query *q, const char *pattern, FILE *to);

/* Print the columns of the tables that match. False if there is none. */
bool lull_query_list_columns(struct lull_query *q, const char *pattern, FILE *to);

/* What of a report is written. */
struct lull_query_part {
	bool (*wants)(void *ctx, const char *table); /* this table of the report; NULL: all */
	void *ctx;				     /* of wants */
	u64 from_ns, to_ns; /* rows that lie in this time, edges included */
};

/*
 * Write a SQLite file with the tables of an nsys export, and what those have no place for in tables
 * LULL_*. `path` is not there yet; a file that is left after a failure is the caller's to remove.
 */
int lull_query_export(struct lull_query *q, const char *path, const struct lull_query_part *part,
		      struct lull_err *err);

#endif
