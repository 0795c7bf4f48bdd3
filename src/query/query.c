#include "query/query.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "text/nearest.h"
#include "base/str.h"
#include "base/time.h"
#include "query/made.h"
#include "query/percentile.h"
#include "query/query_int.h"
#include "query/vtab.h"

/* Steps of SQLite's machine between two looks at the clock: some 100 us. */
#define STEPS_A_LOOK 5000

/* Between two calls of who watches a statement. */
#define WATCH_NS 50000000u

/* What SQLite may hold at once: a sum that groups by everything ends with a sentence, not with the
 * machine's memory. */
#define MAX_MEMORY (2ll << 30)

/* The longest text a query may make. */
#define MAX_TEXT (256 << 20)

/* ---- what is allowed ---- */

static bool is_safe_pragma(const char *name)
{
	static const char *const safe[] = { "table_info",    "table_xinfo",   "table_list",
					    "database_list", "function_list", "compile_options",
					    "module_list",   "collation_list" };

	for (size_t i = 0; i < LULL_COUNT_OF(safe); i++)
		if (!strcasecmp(safe[i], name))
			return true;
	return false;
}

static int authorize(void *ctx, int action, const char *first, const char *second, const char *db,
		     const char *trigger)
{
	const struct lull_query *q = ctx;

	(void)db;
	(void)trigger;
	if (q->is_writing)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return second && !strcasecmp(second, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		return first && is_safe_pragma(first) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int on_progress(void *ctx)
{
	struct lull_query *q = ctx;

	u64 now_ns = q->deadline_ns || q->watch ? lull_now_ns() : 0;

	if (q->deadline_ns && now_ns > q->deadline_ns)
		q->is_timed_out = q->is_stopped = true;
	if (q->watch && now_ns - q->watch_ns > WATCH_NS) {
		q->watch_ns = now_ns;
		q->watch();
	}
	return q->is_stopped;
}

void lull_query_watch(struct lull_query *q, void (*watch)(void))
{
	q->watch = watch;
}

void lull_query_stop(struct lull_query *q)
{
	q->is_stopped = true;
}

/* ---- opening ---- */

static int exec(struct lull_query *q, const char *sql, struct lull_err *err)
{
	if (sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return LULL_OK;
	return lull_fail(err, LULL_E_NOMEM, "preparing the tables for SQL: %s (%s)",
			 sqlite3_errmsg(q->db), sql);
}

static int add_tables(struct lull_query *q, struct lull_err *err)
{
	struct lull_vtab *const *all = q->tables.all.at;
	struct lull_str sql = LULL_STR_INIT;

	lull_str_puts(&sql, "BEGIN;");
	for (size_t i = 0; i < q->tables.all.n; i++)
		if (all[i]->kind != LULL_VTAB_NSYS || lull_vtab_n_rows(all[i]))
			lull_str_addf(&sql, "CREATE VIRTUAL TABLE \"%s\" USING lull;",
				      all[i]->name);
	lull_str_puts(&sql, "COMMIT;");
	if (exec(q, lull_str_text(&sql), err)) {
		lull_str_release(&sql);
		return err->code;
	}
	lull_str_release(&sql);
	return LULL_OK;
}

/* Enumerations are a few rows each: plain tables. */
static int add_enums(struct lull_query *q, struct lull_err *err)
{
	size_t n;
	const struct lull_enum_line *lines = lull_enums(&n);
	struct lull_str sql = LULL_STR_INIT;
	const char *table = "";
	int rc;

	lull_str_puts(&sql, "BEGIN;");
	for (size_t i = 0; i < n; i++) {
		if (lines[i].table) {
			table = lines[i].table;
			lull_str_addf(&sql,
				      "CREATE TABLE %s (id INTEGER NOT NULL PRIMARY KEY, name "
				      "TEXT, label TEXT);",
				      table);
		} else {
			lull_str_addf(&sql, "INSERT INTO %s VALUES (%d, '%s', '%s');", table,
				      (int)lines[i].id, lines[i].name, lines[i].label);
		}
	}
	lull_str_puts(&sql, "COMMIT;");
	rc = exec(q, lull_str_text(&sql), err);
	lull_str_release(&sql);
	return rc;
}

static int setup(struct lull_query *q, struct lull_err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

	if (sqlite3_open_v2(":memory:", &q->db, flags, NULL) != SQLITE_OK)
		return lull_fail(err, LULL_E_NOMEM, "starting SQLite: %s", sqlite3_errmsg(q->db));
	sqlite3_hard_heap_limit64(MAX_MEMORY);
	sqlite3_limit(q->db, SQLITE_LIMIT_LENGTH, MAX_TEXT);
	if (lull_vtab_register(q->db, &q->tables) != SQLITE_OK ||
	    lull_percentile_register(q->db) != SQLITE_OK)
		return lull_fail(err, LULL_E_NOMEM, "starting SQLite: %s", sqlite3_errmsg(q->db));
	if (add_tables(q, err) || add_enums(q, err))
		return err->code;
	sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_set_authorizer(q->db, authorize, q);
	sqlite3_progress_handler(q->db, STEPS_A_LOOK, on_progress, q);
	return LULL_OK;
}

int lull_query_open(struct lull_query **out, struct lull_reader *r, struct lull_err *err)
{
	struct lull_query *q = lull_alloc(1, sizeof(*q));
	int rc;

	q->reader = r;
	lull_values_init(&q->values, r, &q->is_stopped);
	lull_vtabs_init(&q->tables, r, &q->values);
	rc = setup(q, err);
	if (rc)
		lull_query_close(q);
	else
		*out = q;
	return rc;
}

void lull_query_window(struct lull_query *q, struct lull_span window)
{
	q->values.window = window;
}

void lull_query_close(struct lull_query *q)
{
	if (!q)
		return;
	sqlite3_close(q->db);
	lull_vtabs_release(&q->tables);
	lull_values_release(&q->values);
	free(q);
}

/* ---- what went wrong ---- */

/* The last word of the message, if the message starts with this text. */
static const char *unknown_word(const char *message, const char *what)
{
	size_t len = strlen(what);

	return strncmp(message, what, len) ? NULL : message + len;
}

static void near_tables(struct lull_query *q, struct lull_nearest *near)
{
	struct lull_vtab *const *all = q->tables.all.at;
	size_t n;
	const struct lull_enum_line *enums = lull_enums(&n);

	for (size_t i = 0; i < q->tables.all.n; i++)
		lull_nearest_add(near, all[i]->name);
	for (size_t i = 0; i < n; i++)
		if (enums[i].table)
			lull_nearest_add(near, enums[i].table);
}

/* Whether a name is a separate word in the statement. */
static bool is_named(const char *sql, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = sql; (at = strcasestr(at, name)); at++) {
		bool begins = at == sql || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

		if (begins && !isalnum((unsigned char)at[len]) && at[len] != '_')
			return true;
	}
	return false;
}

/* Columns of the tables that the statement names; *table is one of those, or NULL. */
static void near_columns(struct lull_query *q, const char *sql, struct lull_nearest *near,
			 const char **table)
{
	struct lull_vtab *const *all = q->tables.all.at;

	for (size_t i = 0; i < q->tables.all.n; i++) {
		if (!is_named(sql, all[i]->name))
			continue;
		*table = all[i]->name;
		for (int c = 0; c < all[i]->n_cols; c++)
			if (strcasecmp(all[i]->cols[c].name, near->word) != 0)
				lull_nearest_add(near, all[i]->cols[c].name);
	}
}

int lull_query_no_table(struct lull_query *q, const char *name, struct lull_err *err)
{
	const struct lull_vtab *known = lull_vtabs_find(&q->tables, name);
	struct lull_nearest near = { .word = name };

	if (known)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "the report has no rows for %s (%s); as in an nsys export, a "
				 "table without rows does not exist",
				 known->name, known->doc);
	near_tables(q, &near);
	return lull_fail(err, LULL_E_USAGE, "there is no table %s; %s%s%s", name,
			 near.best ? "did you mean " : "`.tables` lists them",
			 near.best ? near.best : "", near.best ? "?" : "");
}

/* " at line 2, column 7", if SQLite knows. */
static void add_place(struct lull_str *to, sqlite3 *db, const char *sql)
{
#if SQLITE_VERSION_NUMBER >= 3038000
	int off = sqlite3_error_offset(db);
	int line = 1, column = 1;

	if (off < 0 || (size_t)off > strlen(sql))
		return;
	for (int i = 0; i < off; i++) {
		column = sql[i] == '\n' ? 1 : column + 1;
		line += sql[i] == '\n';
	}
	if (strchr(sql, '\n'))
		lull_str_addf(to, " at line %d, column %d", line, column);
	else
		lull_str_addf(to, " at column %d", column);
#else
	(void)to;
	(void)db;
	(void)sql;
#endif
}

static int wrong_sql(struct lull_query *q, const char *sql, struct lull_err *err)
{
	const char *message = sqlite3_errmsg(q->db);
	const char *table = unknown_word(message, "no such table: ");
	const char *column = unknown_word(message, "no such column: ");
	struct lull_str text = LULL_STR_INIT;
	struct lull_nearest near = { 0 };
	int rc;

	if (table)
		return lull_query_no_table(q, table, err);
	lull_str_puts(&text, message);
	add_place(&text, q->db, sql);
	if (column) {
		const char *dot = strrchr(column, '.');

		near.word = dot ? dot + 1 : column;
		near_columns(q, sql, &near, &table);
		if (near.best)
			lull_str_addf(&text, "; did you mean %s?", near.best);
		else if (table)
			lull_str_addf(&text, "; `.schema %s` lists the columns", table);
	}
	rc = lull_fail(err, LULL_E_USAGE, "%s", lull_str_text(&text));
	lull_str_release(&text);
	return rc;
}

int lull_query_fail(struct lull_query *q, const char *sql, struct lull_err *err)
{
	switch (sqlite3_errcode(q->db)) {
	case SQLITE_AUTH:
		return lull_fail(
			err, LULL_E_USAGE,
			"queries are read-only: only SELECT and PRAGMA table_info are allowed (%s)",
			sqlite3_errmsg(q->db));
	case SQLITE_INTERRUPT:
		if (q->is_timed_out)
			return lull_fail(err, LULL_E_IO,
					 "the query took too long and was stopped; --timeout sets "
					 "the limit in seconds, 0 is no limit");
		return lull_fail(err, LULL_E_IO, "the query was interrupted");
	case SQLITE_NOMEM:
	case SQLITE_FULL:
		return lull_fail(err, LULL_E_NOMEM,
				 "the query needs more than 2 GiB of memory; select fewer rows");
	default:
		return wrong_sql(q, sql, err);
	}
}
