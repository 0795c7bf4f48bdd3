/*
 * A SQLite file from the tables that SQL sees.
 *
 * SQLite makes the file, the tables, and the rows of short ones. Long ones are written after them
 * as pages (pages.h): INSERT manages 1.5 million rows a second. No index, as nsys does it; the
 * caller renames the file when it is whole.
 *
 * Tables of nsys are written if they have rows. What has no place in them goes to tables LULL_*:
 * all dimensions but those that the rows of nsys carry themselves, and facts that nsys does not
 * know.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "query/made.h"
#include "query/pages.h"
#include "query/query_int.h"

/* SQLite's cache for the file: it is written once, front to back. */
#define CACHE_KIB 16384

/* A table whose rows are written as pages. */
struct paged {
	const struct lull_vtab *table;
	char *name;
	u32 root;
};

struct copy {
	struct lull_query *query;
	const struct lull_query_part *part;
	struct lull_str sql;
	struct lull_vec paged; /* struct paged */
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

		if (!source || !c->part->wants || c->part->wants(c->part->ctx, source->name))
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
	for (size_t i = 0; i < c->query->tables.all.n; i++) {
		for (int part = 0; all[i]->kind == LULL_VTAB_NSYS && part < all[i]->n_parts; part++)
			if (all[i]->parts[part].table && all[i]->parts[part].table->id == table->id)
				return true;
	}
	return false;
}

/* Parts that only SQL reads are whole tables, and not long; the others are written as pages. */
static bool is_paged(const struct lull_vtab *t)
{
	return t->parts[0].ops->value != NULL;
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
	if (is_paged(t))
		*(struct paged *)lull_vec_push(&c->paged) =
			(struct paged){ t, lull_strdup(name), 0 };
	else
		lull_str_addf(&c->sql, "INSERT INTO out.\"%s\" SELECT * FROM main.\"%s\";", name,
			      t->name);
	return exec(c, err);
}

/* ---- pages ---- */

/* Ask where the tables begin, while SQLite has the file. */
static int find_roots(struct copy *c, struct lull_err *err)
{
	struct paged *all = c->paged.at;
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(c->query->db,
				    "SELECT rootpage FROM out.sqlite_master WHERE name = ?", -1,
				    &stmt, NULL);

	for (size_t i = 0; i < c->paged.n && rc == SQLITE_OK; i++) {
		sqlite3_bind_text(stmt, 1, all[i].name, -1, SQLITE_STATIC);
		if (sqlite3_step(stmt) == SQLITE_ROW)
			all[i].root = (u32)sqlite3_column_int64(stmt, 0);
		rc = sqlite3_reset(stmt);
	}
	if (rc != SQLITE_OK)
		failed(c, rc, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_OK ? LULL_OK : err->code;
}

static void write_part(struct lull_pages *pages, const struct lull_vtab_part *part,
		       const struct lull_query_part *wanted)
{
	/* Dimensions have no time, and are whole. */
	const struct lull_filter rows = { .used = UINT64_MAX,
					  .start_lo = wanted->from_ns,
					  .start_hi = UINT64_MAX,
					  .end_hi = wanted->to_ns,
					  .key_col = -1 };
	struct lull_walk *walk = part->ops->begin(part);
	struct lull_value values[LULL_VTAB_MAX_COLS];

	part->ops->filter(walk, &rows);
	while (part->ops->next(walk)) {
		for (int i = 0; i < part->n_cols; i++)
			values[i] = part->ops->value(walk, i);
		lull_pages_add(pages, values, part->n_cols);
	}
	part->ops->end(walk);
}

static int write_pages(struct copy *c, const char *path, struct lull_err *err)
{
	const struct paged *all = c->paged.at;
	struct lull_pages *pages;
	int rc = lull_pages_open(&pages, path, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < c->paged.n; i++) {
		lull_pages_begin(pages, all[i].root);
		for (int part = 0; part < all[i].table->n_parts; part++)
			write_part(pages, &all[i].table->parts[part], c->part);
		lull_pages_end(pages);
	}
	return lull_pages_close(pages, err);
}

/* ---- tables ---- */

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
		"ATTACH %Q AS out; PRAGMA out.page_size=4096; PRAGMA out.auto_vacuum=NONE;"
		"PRAGMA out.journal_mode=OFF; PRAGMA out.synchronous=OFF;"
		"PRAGMA out.locking_mode=EXCLUSIVE; PRAGMA out.cache_size=-%d; BEGIN;",
		path, CACHE_KIB);

	lull_str_puts(&c->sql, sql ? sql : "");
	sqlite3_free(sql);
	return exec(c, err);
}

int lull_query_export(struct lull_query *q, const char *path, const struct lull_query_part *part,
		      struct lull_err *err)
{
	struct copy c = { .query = q, .part = part };
	struct paged *paged;
	int rc;

	lull_vec_init(&c.paged, sizeof(*paged));
	q->is_writing = true;
	q->deadline_ns = 0;
	rc = attach(&c, path, err);
	if (!rc)
		rc = copy_all(&c, err);
	if (!rc)
		rc = find_roots(&c, err);
	if (!rc) {
		lull_str_puts(&c.sql, "COMMIT; DETACH out;");
		rc = exec(&c, err);
	} else {
		sqlite3_exec(q->db, "ROLLBACK; DETACH out;", NULL, NULL, NULL);
	}
	if (!rc)
		rc = write_pages(&c, path, err);
	q->is_writing = false;
	paged = c.paged.at;
	for (size_t i = 0; i < c.paged.n; i++)
		free(paged[i].name);
	lull_vec_release(&c.paged);
	lull_str_release(&c.sql);
	return rc;
}
