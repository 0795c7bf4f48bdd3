/*
 * A SQLite file from the virtual tables: CREATE TABLE and INSERT ... SELECT for each.
 *
 * Columns that are null or a constant in all rows are literals in the SELECT, which spares a call
 * per row: half of the forty columns of a kernel are. One transaction, no journal, no index, as
 * nsys does it; the caller renames the file when it is whole.
 *
 * Tables of nsys are written if they have rows. What has no place in them goes to tables LULL_*: all
 * dimensions but those that the rows of nsys carry themselves, and facts that nsys does not know.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "query/made.h"
#include "query/query_int.h"

/* SQLite's cache for the file: it is written once, front to back. */
#define CACHE_KIB 16384

struct copy {
	struct lull_query *query;
	bool (*wants)(void *ctx, const char *table);
	void *ctx;
	struct lull_str sql;
};

static int failed(const struct copy *c, int rc, struct lull_err *err)
{
	return lull_fail(err, rc == SQLITE_NOMEM ? LULL_E_NOMEM : LULL_E_IO, "writing SQLite: %s",
			 sqlite3_errmsg(c->query->db));
}

static int exec(struct copy *c, struct lull_err *err)
{
	int rc = sqlite3_exec(c->query->db, lull_str_text(&c->sql), NULL, NULL, NULL);

	lull_str_clear(&c->sql);
	return rc == SQLITE_OK ? LULL_OK : failed(c, rc, err);
}

static bool is_wanted(const struct copy *c, const struct lull_vtab *t)
{
	for (int p = 0; p < t->n_parts; p++) {
		const struct lull_table_desc *source =
			t->parts[p].table ? t->parts[p].table : t->parts[p].users;

		if (!source || !c->wants || c->wants(c->ctx, source->name))
			return true;
	}
	return false;
}

/* Whether some table of nsys is made of this one. */
static bool is_in_nsys(const struct copy *c, const struct lull_table_desc *table)
{
	struct lull_vtab *const *all = c->query->tables.all.at;

	if (table->id == LULL_TABLE_launch || table->id == LULL_TABLE_label)
		return true;
	/* Values of counters are whole numbers there, and have no process. */
	if (table->id == LULL_TABLE_counter)
		return false;
	for (size_t i = 0; i < c->query->tables.all.n; i++)
		if (all[i]->kind == LULL_VTAB_NSYS && all[i]->parts[0].table &&
		    all[i]->parts[0].table->id == table->id)
			return true;
	return false;
}

/* A literal if the cell has the same value in all rows, else the name of the column. */
static void add_source_column(struct lull_str *to, const struct lull_vtab *t, int col)
{
	const struct lull_cell *cell = t->n_parts == 1 && t->parts[0].ops == &lull_part_fact
					       ? &t->parts[0].cells[col]
					       : NULL;

	if (cell && cell->kind == LULL_CELL_IS_NULL)
		lull_str_puts(to, "NULL");
	else if (cell && cell->kind == LULL_CELL_IS_CONSTANT)
		lull_str_addf(to, "%lld", (long long)cell->constant);
	else
		lull_str_addf(to, "\"%s\"", t->cols[col].name);
}

static int copy_table(struct copy *c, const struct lull_vtab *t, const char *name,
		      struct lull_err *err)
{
	bool is_strings = t->parts[0].ops == &lull_part_strings;

	lull_str_addf(&c->sql, "CREATE TABLE out.\"%s\" (", name);
	for (int i = 0; i < t->n_cols; i++)
		lull_str_addf(&c->sql, "%s\"%s\" %s%s", i ? ", " : "", t->cols[i].name,
			      t->cols[i].decl, is_strings && !i ? " PRIMARY KEY" : "");
	lull_str_puts(&c->sql, ");");
	lull_str_addf(&c->sql, "INSERT INTO out.\"%s\" SELECT ", name);
	for (int i = 0; i < t->n_cols; i++) {
		lull_str_puts(&c->sql, i ? ", " : "");
		add_source_column(&c->sql, t, i);
	}
	lull_str_addf(&c->sql, " FROM main.\"%s\";", t->name);
	return exec(c, err);
}

static int copy_enums(struct copy *c, struct lull_err *err)
{
	size_t n;
	const struct lull_enum_line *lines = lull_enums(&n);

	for (size_t i = 0; i < n; i++)
		if (lines[i].table)
			lull_str_addf(&c->sql,
				      "CREATE TABLE out.%s (id INTEGER NOT NULL PRIMARY KEY, name "
				      "TEXT, label TEXT);"
				      "INSERT INTO out.%s SELECT * FROM main.%s;",
				      lines[i].table, lines[i].table, lines[i].table);
	return exec(c, err);
}

static int copy_own(struct copy *c, const struct lull_vtab *t, struct lull_err *err)
{
	char name[64] = "LULL_";
	size_t len = strlen(name);

	for (const char *at = t->name; *at && len + 1 < sizeof(name); at++)
		name[len++] = (char)toupper((unsigned char)*at);
	name[len] = '\0';
	return copy_table(c, t, name, err);
}

static int copy_all(struct copy *c, struct lull_err *err)
{
	struct lull_vtab *const *all = c->query->tables.all.at;
	int rc = copy_enums(c, err);

	for (size_t i = 0; i < c->query->tables.all.n && !rc; i++) {
		const struct lull_vtab *t = all[i];

		if (t->kind == LULL_VTAB_MORE || !lull_vtab_n_rows(t) || !is_wanted(c, t))
			continue;
		if (t->kind == LULL_VTAB_NSYS)
			rc = copy_table(c, t, t->name, err);
		else if (!is_in_nsys(c, t->parts[0].table))
			rc = copy_own(c, t, err);
	}
	return rc;
}

static int attach(struct copy *c, const char *path, struct lull_err *err)
{
	char *sql = sqlite3_mprintf(
		"ATTACH %Q AS out; PRAGMA out.journal_mode=OFF; PRAGMA out.synchronous=OFF;"
		"PRAGMA out.locking_mode=EXCLUSIVE; PRAGMA out.cache_size=-%d; BEGIN;",
		path, CACHE_KIB);

	lull_str_puts(&c->sql, sql ? sql : "");
	sqlite3_free(sql);
	return exec(c, err);
}

int lull_query_export(struct lull_query *q, const char *path,
		      bool (*wants)(void *ctx, const char *table), void *ctx, struct lull_err *err)
{
	struct copy c = { .query = q, .wants = wants, .ctx = ctx };
	int rc;

	q->is_writing = true;
	q->deadline_ns = 0;
	rc = attach(&c, path, err);
	if (!rc)
		rc = copy_all(&c, err);
	if (!rc) {
		lull_str_puts(&c.sql, "COMMIT; DETACH out;");
		rc = exec(&c, err);
	} else {
		sqlite3_exec(q->db, "ROLLBACK; DETACH out;", NULL, NULL, NULL);
	}
	q->is_writing = false;
	lull_str_release(&c.sql);
	return rc;
}
