/* Statements one by one, and their results through text/out. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "query/query_int.h"

/* Rows that are printed at once where a format can be continued. */
#define BATCH_ROWS 8192

struct result {
	sqlite3_stmt *stmt;
	struct lull_out_column *columns;
	struct lull_out out;
	struct lull_out_options options;
	size_t n_columns;
	u64 n_rows;
	FILE *to;
};

static void begin(struct result *res, const struct lull_out_options *options)
{
	res->n_columns = (size_t)sqlite3_column_count(res->stmt);
	res->columns = lull_alloc(res->n_columns + 1, sizeof(*res->columns));
	res->options = *options;
	for (size_t c = 0; c < res->n_columns; c++)
		res->columns[c] = (struct lull_out_column){
			.name = sqlite3_column_name(res->stmt, (int)c),
			.kind = LULL_OUT_NUMBER,
		};
	lull_out_init(&res->out, res->columns, res->n_columns);
}

static void put_blob(struct lull_out *out, const u8 *bytes, int n)
{
	struct lull_str hex = LULL_STR_INIT;

	for (int i = 0; i < n; i++)
		lull_str_addf(&hex, "%02x", bytes[i]);
	lull_out_text(out, lull_str_text(&hex));
	lull_str_release(&hex);
}

static void put_row(struct result *res)
{
	lull_out_row(&res->out);
	for (size_t c = 0; c < res->n_columns; c++) {
		int type = sqlite3_column_type(res->stmt, (int)c);

		if (type == SQLITE_TEXT || type == SQLITE_BLOB)
			res->columns[c].kind = LULL_OUT_TEXT;
		if (type == SQLITE_INTEGER)
			lull_out_i64(&res->out, sqlite3_column_int64(res->stmt, (int)c));
		else if (type == SQLITE_FLOAT)
			lull_out_f64(&res->out, sqlite3_column_double(res->stmt, (int)c));
		else if (type == SQLITE_TEXT)
			lull_out_text(&res->out,
				      (const char *)sqlite3_column_text(res->stmt, (int)c));
		else if (type == SQLITE_BLOB)
			put_blob(&res->out, sqlite3_column_blob(res->stmt, (int)c),
				 sqlite3_column_bytes(res->stmt, (int)c));
		else
			lull_out_skip(&res->out);
	}
	res->n_rows++;
}

/* csv and tsv can be continued, so that a long result needs no memory. */
static bool is_continued(const struct result *res)
{
	return res->options.format == LULL_OUT_FORMAT_csv ||
	       res->options.format == LULL_OUT_FORMAT_tsv;
}

static int flush(struct result *res, struct lull_err *err)
{
	int rc = lull_out_write(&res->out, &res->options, res->to, err);

	res->options.has_no_header = true;
	lull_out_release(&res->out);
	lull_out_init(&res->out, res->columns, res->n_columns);
	return rc;
}

static int fetch(struct result *res, u64 max_rows, int *step, struct lull_err *err)
{
	int rc = LULL_OK;

	while (!rc && (!max_rows || res->n_rows < max_rows) &&
	       (*step = sqlite3_step(res->stmt)) == SQLITE_ROW) {
		put_row(res);
		if (is_continued(res) && lull_out_len(&res->out) == BATCH_ROWS)
			rc = flush(res, err);
	}
	/* Exactly as many rows as allowed are a whole result. */
	if (!rc && *step == SQLITE_ROW)
		*step = sqlite3_step(res->stmt);
	return rc;
}

static int run_one(struct lull_query *q, sqlite3_stmt *stmt, const char *sql,
		   const struct lull_query_limits *limits, struct result *res, struct lull_err *err)
{
	int step = SQLITE_OK, rc;

	res->stmt = stmt;
	rc = fetch(res, limits->max_rows, &step, err);
	if (!rc && (res->n_rows % BATCH_ROWS || !is_continued(res) || !res->n_rows))
		rc = flush(res, err);
	if (!rc && step == SQLITE_ROW)
		rc = lull_fail(err, LULL_E_IO,
			       "stopped after %llu rows; --max-rows sets the limit, 0 is no limit",
			       (unsigned long long)limits->max_rows);
	else if (!rc && step != SQLITE_DONE)
		rc = lull_query_fail(q, sql, err);
	return rc;
}

int lull_query_run(struct lull_query *q, const char *sql, const struct lull_query_limits *limits,
		   const struct lull_out_options *options, FILE *to, struct lull_err *err)
{
	int rc = LULL_OK;

	q->is_stopped = q->is_timed_out = false;
	q->deadline_ns = limits->timeout_ns ? lull_now_ns() + limits->timeout_ns : 0;
	while (!rc && *sql) {
		struct result res = { .to = to };
		sqlite3_stmt *stmt = NULL;
		const char *rest;

		if (sqlite3_prepare_v2(q->db, sql, -1, &stmt, &rest) != SQLITE_OK)
			return lull_query_fail(q, sql, err);
		if (stmt) {
			res.stmt = stmt;
			begin(&res, options);
			/*
			 * An empty line between tables, for formats that are read by people;
			 * programs ask for one table.
			 */
			if (q->n_results++ && (options->format == LULL_OUT_FORMAT_column ||
					       options->format == LULL_OUT_FORMAT_table))
				putc('\n', to);
			rc = run_one(q, stmt, sql, limits, &res, err);
			lull_out_release(&res.out);
			free(res.columns);
		}
		sqlite3_finalize(stmt);
		sql = rest;
	}
	return rc;
}
