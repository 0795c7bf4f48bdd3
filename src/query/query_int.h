/*
 * query_int - what the files of query share. Private to src/query/.
 */
#ifndef LULL_QUERY_QUERY_INT_H
#define LULL_QUERY_QUERY_INT_H

#include "query/query.h"
#include "query/table.h"
#include "query/values.h"

struct lull_query {
	struct lull_reader *reader; /* borrowed */
	sqlite3 *db;
	struct lull_values values;
	struct lull_vtabs tables;
	bool is_stopped; /* set by lull_query_stop() and when the time is over */
	bool is_timed_out;
	bool is_writing;     /* the export: everything is allowed */
	u64 n_results;	     /* printed so far */
	u64 deadline_ns;     /* CLOCK_MONOTONIC; 0: none */
	void (*watch)(void); /* called now and then while a statement runs; NULL: nobody */
	u64 watch_ns;	     /* CLOCK_MONOTONIC: when it was called last */
};

/* What SQLite says is wrong, as a sentence; `sql` is where the statement begins. */
int lull_query_fail(struct lull_query *q, const char *sql, struct lull_err *err);

/* There is no table of this name: LULL_E_USAGE with what it may be, or why it is not there. */
int lull_query_no_table(struct lull_query *q, const char *name, struct lull_err *err);

#endif
