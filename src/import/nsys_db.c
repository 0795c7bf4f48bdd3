#include "import/nsys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* How long to wait for a program that writes to the file, ms. */
#define BUSY_MS 2000

/* The longest text of a cell; beyond it a file is not what it says. */
#define MAX_TEXT (64 << 20)

/* Rows between two looks at the clock. */
#define ROWS_A_LOOK 4096

/* ---- opening ---- */

static int refuse(struct lull_nsys *n, int rc, struct lull_err *err)
{
	const char *path = n->job->path;

	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return lull_fail(err, LULL_E_IO,
				 "%s is locked by a program that is writing to it; try again later",
				 path);
	case SQLITE_NOTADB:
		return lull_fail(err, LULL_E_FORMAT,
				 "%s is not an SQLite database, or it is encrypted; export it "
				 "again without encryption",
				 path);
	case SQLITE_CORRUPT:
		return lull_fail(err, LULL_E_FORMAT,
				 "%s is damaged or cut off (%s); export it again", path,
				 sqlite3_errmsg(n->db));
	default:
		return lull_fail(err, LULL_E_IO, "opening %s: %s", path, sqlite3_errmsg(n->db));
	}
}

/* Files are what others made: nothing in them may run. */
static void make_safe(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_TEXT);
	sqlite3_busy_timeout(db, BUSY_MS);
}

/* Tables of an nsys export of which at least one is there. */
static bool is_export(struct lull_nsys *n)
{
	static const char *const any[] = { "StringIds", "META_DATA_EXPORT", "NVTX_EVENTS",
					   "CUPTI_ACTIVITY_KIND_KERNEL",
					   "CUPTI_ACTIVITY_KIND_RUNTIME" };

	for (size_t i = 0; i < LULL_COUNT_OF(any); i++)
		if (lull_nsys_has(n, any[i]))
			return true;
	return false;
}

int lull_nsys_open(struct lull_nsys *n, struct lull_err *err)
{
	const char *path;
	int rc = lull_import_plain_path(n->job, &path, err);

	if (rc)
		return rc;
	rc = sqlite3_open_v2(path, &n->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return refuse(n, rc, err);
	make_safe(n->db);
	rc = sqlite3_exec(n->db, "PRAGMA cell_size_check=ON; SELECT count(*) FROM sqlite_master",
			  NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return refuse(n, rc, err);
	if (!is_export(n))
		return lull_fail(
			err, LULL_E_FORMAT,
			"%s is a SQLite database, but not an export of nsys or lull: it has "
			"no table StringIds",
			n->job->path);
	if (lull_nsys_has(n, "StringIds"))
		sqlite3_prepare_v2(n->db, "SELECT value FROM StringIds WHERE id = ?", -1,
				   &n->string_stmt, NULL);
	return LULL_OK;
}

void lull_nsys_close(struct lull_nsys *n)
{
	char **names = n->read.at;

	sqlite3_finalize(n->string_stmt);
	sqlite3_close(n->db);
	for (size_t i = 0; i < n->read.n; i++)
		free(names[i]);
	lull_vec_release(&n->read);
}

/* ---- reading ---- */

/* Run a query of one text parameter; whether there is a row. */
static bool has_row(struct lull_nsys *n, const char *sql, const char *first, const char *second)
{
	sqlite3_stmt *stmt = NULL;
	bool has = false;

	if (sqlite3_prepare_v2(n->db, sql, -1, &stmt, NULL) == SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, first, -1, SQLITE_STATIC);
		if (second)
			sqlite3_bind_text(stmt, 2, second, -1, SQLITE_STATIC);
		has = sqlite3_step(stmt) == SQLITE_ROW;
	}
	sqlite3_finalize(stmt);
	return has;
}

/* Views and virtual tables of a foreign file are not tables. */
#define IS_TABLE "type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"

bool lull_nsys_has(struct lull_nsys *n, const char *table)
{
	return has_row(n, "SELECT 1 FROM sqlite_master WHERE " IS_TABLE " AND name = ?", table,
		       NULL);
}

static bool has_column(struct lull_nsys *n, const char *table, const char *column)
{
	return has_row(n, "SELECT 1 FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE", table,
		       column);
}

static void damaged(struct lull_nsys *n, const char *table)
{
	if (!n->n_damaged++)
		snprintf(n->damage, sizeof(n->damage), "%s: %s", table, sqlite3_errmsg(n->db));
}

/* The number of the last row: about how many there are, and found at once. */
static u64 last_row(struct lull_nsys *n, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT max(rowid) FROM \"%w\"", table);
	sqlite3_stmt *stmt = NULL;
	u64 row = 0;

	if (sqlite3_prepare_v2(n->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		row = lull_nsys_u64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
	return row;
}

void lull_nsys_skip(struct lull_nsys *n, const char *table)
{
	*(char **)lull_vec_push(&n->read) = lull_strdup(table);
}

void lull_nsys_each(struct lull_nsys *n, const char *table, const char *const *cols,
		    const char *tail, lull_nsys_row_fn *fn)
{
	struct lull_str sql = LULL_STR_INIT;
	sqlite3_stmt *stmt = NULL;
	u64 n_rows = 0;
	int rc;

	if (!lull_nsys_has(n, table))
		return;
	lull_nsys_skip(n, table);
	lull_str_puts(&sql, "SELECT ");
	for (int i = 0; cols[i]; i++) {
		bool has = has_column(n, table, cols[i]);

		lull_str_addf(&sql, has ? "%s\"%s\"" : "%sNULL AS \"%s\"", i ? ", " : "", cols[i]);
	}
	lull_str_addf(&sql, " FROM \"%s\" %s", table, tail);
	rc = sqlite3_prepare_v2(n->db, sql.at, -1, &stmt, NULL);
	lull_progress_begin(&n->job->progress, "importing", "rows", last_row(n, table));
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW)
			fn(n, stmt);
		if (++n_rows % ROWS_A_LOOK == 0)
			lull_progress_at(&n->job->progress, n_rows);
	}
	if (rc != SQLITE_DONE)
		damaged(n, table);
	sqlite3_finalize(stmt);
	lull_str_release(&sql);
}

/* ---- what was not read ---- */

/* Tables that describe others, or the machine, and are no events. */
static bool is_description(const char *table)
{
	static const char *const prefixes[] = { "ENUM_",     "META_DATA_", "TARGET_INFO_",
						"ANALYSIS_", "sqlite_",	   "ProcessStreams",
						"StringIds", "LULL_",	   "EXPORT_" };

	for (size_t i = 0; i < LULL_COUNT_OF(prefixes); i++)
		if (!strncmp(table, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static bool was_read(const struct lull_nsys *n, const char *table)
{
	char *const *names = n->read.at;

	for (size_t i = 0; i < n->read.n; i++)
		if (!strcmp(names[i], table))
			return true;
	return false;
}

static u64 count_rows(struct lull_nsys *n, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
	sqlite3_stmt *stmt = NULL;
	u64 count = 0;

	if (sqlite3_prepare_v2(n->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		count = lull_nsys_u64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
	return count;
}

void lull_nsys_count_rest(struct lull_nsys *n)
{
	sqlite3_stmt *stmt = NULL;

	sqlite3_prepare_v2(n->db, "SELECT name FROM sqlite_master WHERE " IS_TABLE, -1, &stmt,
			   NULL);
	while (stmt && sqlite3_step(stmt) == SQLITE_ROW) {
		const char *table = (const char *)sqlite3_column_text(stmt, 0);
		u64 count;

		if (!table || is_description(table) || was_read(n, table))
			continue;
		count = count_rows(n, table);
		if (!count)
			continue;
		n->job->result->n_unmapped += count;
		lull_issue_write(n->writer, LULL_ISSUE_import_unmapped, 0, count, table);
	}
	sqlite3_finalize(stmt);
}

/* ---- values ---- */

u64 lull_nsys_u64(sqlite3_stmt *row, int col)
{
	i64 v = sqlite3_column_int64(row, col);

	return v < 0 ? 0 : (u64)v;
}

u32 lull_nsys_u32(sqlite3_stmt *row, int col)
{
	return (u32)sqlite3_column_int64(row, col);
}

bool lull_nsys_is_null(sqlite3_stmt *row, int col)
{
	return sqlite3_column_type(row, col) == SQLITE_NULL;
}

u32 lull_nsys_text(struct lull_nsys *n, sqlite3_stmt *row, int col)
{
	const char *text = (const char *)sqlite3_column_text(row, col);
	int len = sqlite3_column_bytes(row, col);

	return text ? lull_writer_string(n->writer, text, (size_t)len) : 0;
}

u32 lull_nsys_string(struct lull_nsys *n, sqlite3_stmt *row, int col)
{
	i64 id = sqlite3_column_int64(row, col);
	bool is_new;
	u32 *known, ours;

	if (lull_nsys_is_null(row, col) || !n->string_stmt)
		return 0;
	known = lull_map_add(&n->strings, (u64)id, &is_new);
	if (!is_new)
		return *known;
	sqlite3_bind_int64(n->string_stmt, 1, id);
	if (sqlite3_step(n->string_stmt) == SQLITE_ROW) {
		ours = lull_nsys_text(n, n->string_stmt, 0);
		*known = ours;
	}
	sqlite3_reset(n->string_stmt);
	return *known;
}
