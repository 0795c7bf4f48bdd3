/* Results of SQL, and tables without it, as frames. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "query/frame.h"
#include "query/made.h"
#include "query/query_int.h"
#include "text/nearest.h"
#include "trace/file_frame.h"

/* ---- SQL ---- */

static void add_cell(struct lull_frame *f, sqlite3_stmt *stmt, int c)
{
	size_t len;

	switch (sqlite3_column_type(stmt, c)) {
	case SQLITE_INTEGER:
		lull_frame_add_int(f, (size_t)c, sqlite3_column_int64(stmt, c));
		break;
	case SQLITE_FLOAT:
		lull_frame_add_real(f, (size_t)c, sqlite3_column_double(stmt, c));
		break;
	case SQLITE_TEXT: {
		const char *text = (const char *)sqlite3_column_text(stmt, c);

		len = (size_t)sqlite3_column_bytes(stmt, c);
		lull_frame_add_text(f, (size_t)c, text ? text : "", text ? len : 0);
		break;
	}
	case SQLITE_BLOB:
		len = (size_t)sqlite3_column_bytes(stmt, c);
		lull_frame_add_blob(f, (size_t)c, sqlite3_column_blob(stmt, c), len);
		break;
	default:
		lull_frame_add_null(f, (size_t)c);
	}
}

static int fetch(struct lull_frame *f, struct lull_query *q, sqlite3_stmt *stmt, const char *sql,
		 const struct lull_query_limits *limits, struct lull_err *err)
{
	int n_cols = sqlite3_column_count(stmt), step;

	lull_frame_init(f, (size_t)n_cols);
	for (int c = 0; c < n_cols; c++)
		lull_frame_name(f, (size_t)c, sqlite3_column_name(stmt, c));
	while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (limits->max_rows && f->n_rows == limits->max_rows) {
			lull_fail(err, LULL_E_IO, "the result has more than %llu rows",
				  (unsigned long long)limits->max_rows);
			break;
		}
		for (int c = 0; c < n_cols; c++)
			add_cell(f, stmt, c);
		lull_frame_end_row(f);
	}
	if (step == SQLITE_DONE)
		return LULL_OK;
	if (step != SQLITE_ROW)
		lull_query_fail(q, sql, err);
	lull_frame_release(f);
	return err->code;
}

/* Whether nothing but blanks, comments and semicolons is left. */
static bool is_end(struct lull_query *q, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	bool is;

	while (*sql) {
		const char *rest = sql;

		if (sqlite3_prepare_v2(q->db, sql, -1, &stmt, &rest) != SQLITE_OK)
			return false;
		is = !stmt && rest > sql;
		sqlite3_finalize(stmt);
		if (!is)
			return false;
		sql = rest;
	}
	return true;
}

int lull_frame_query(struct lull_frame *f, struct lull_query *q, const char *sql,
		     const struct lull_query_limits *limits, struct lull_err *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *rest = "";
	int rc;

	*f = (struct lull_frame){ 0 };
	q->is_stopped = q->is_timed_out = false;
	q->deadline_ns = limits->timeout_ns ? lull_now_ns() + limits->timeout_ns : 0;
	if (sqlite3_prepare_v2(q->db, sql, -1, &stmt, &rest) != SQLITE_OK)
		return lull_query_fail(q, sql, err);
	if (!stmt)
		return lull_fail(err, LULL_E_USAGE, "there is no statement in the SQL");
	if (!is_end(q, rest))
		rc = lull_fail(err, LULL_E_USAGE, "more than one statement; give them one by one");
	else
		rc = fetch(f, q, stmt, sql, limits, err);
	sqlite3_finalize(stmt);
	return rc;
}

/* ---- tables ---- */

static void add_value(struct lull_frame *f, size_t c, const struct lull_value *v)
{
	switch (v->kind) {
	case LULL_IS_INT:
		lull_frame_add_int(f, c, v->i);
		return;
	case LULL_IS_REAL:
		lull_frame_add_real(f, c, v->f);
		return;
	case LULL_IS_TEXT:
		lull_frame_add_fixed(f, c, v->text, v->len);
		return;
	case LULL_IS_BLOB:
		lull_frame_add_blob(f, c, v->text, v->len);
		return;
	default:
		lull_frame_add_null(f, c);
	}
}

/* What is read: which columns of the table, in which order. */
struct choice {
	const struct lull_vtab *table;
	int *cols;
	size_t n;
};

static u64 used_of(const struct choice *choice)
{
	u64 used = 0;

	for (size_t i = 0; i < choice->n; i++)
		used |= 1ull << (choice->cols[i] < 63 ? choice->cols[i] : 63);
	return used;
}

/* ---- whole blocks: numbers that are columns of the report ---- */

/* Whether all that is asked for are such numbers; the cells are prepared. */
static bool is_plain(const struct choice *choice, const struct lull_vtab_part *part)
{
	if (part->ops != &lull_part_fact || part->test.kind != LULL_TEST_NONE ||
	    choice->table->n_parts != 1)
		return false;
	lull_cells_prepare(part, used_of(choice));
	for (size_t i = 0; i < choice->n; i++) {
		const struct lull_cell *cell = &part->cells[choice->cols[i]];

		if (!cell->is_plain &&
		    !(cell->kind == LULL_CELL_IS_END && cell->when_col < 0 && cell->plus_col < 0))
			return false;
	}
	return true;
}

static void widen(i64 *to, const void *from, u8 size_bytes, size_t n)
{
	if (size_bytes == sizeof(i64)) {
		memcpy(to, from, n * sizeof(i64));
	} else if (size_bytes == sizeof(u32)) {
		for (size_t i = 0; i < n; i++)
			to[i] = ((const u32 *)from)[i];
	} else {
		for (size_t i = 0; i < n; i++)
			to[i] = (i64)lull_load_at(from, size_bytes, i);
	}
}

static void copy_column(i64 *to, const struct lull_cell *cell, const void *const *cols, int dur_col,
			size_t n)
{
	const u64 *dur;

	if (cell->kind != LULL_CELL_IS_END) {
		widen(to, cols[cell->col], cell->size_bytes, n);
		return;
	}
	widen(to, cols[0], sizeof(u64), n);
	dur = dur_col < 0 ? NULL : cols[dur_col];
	for (size_t i = 0; dur && i < n; i++)
		to[i] = (i64)((u64)to[i] + dur[i]);
}

static void copy_blocks(struct lull_frame *f, const struct choice *choice,
			const struct lull_vtab_part *part)
{
	const struct lull_table_desc *table = part->table;
	int dur_col = lull_table_column(table, "dur_ns");
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	size_t n;

	lull_cursor_init_table(&c, part->reader, table, 0, UINT64_MAX);
	lull_cursor_want(&c, table->cols[0].name);
	for (size_t i = 0; i < choice->n; i++) {
		const struct lull_cell *cell = &part->cells[choice->cols[i]];

		if (cell->kind != LULL_CELL_IS_END)
			lull_cursor_want(&c, table->cols[cell->col].name);
		else if (dur_col >= 0)
			lull_cursor_want(&c, table->cols[dur_col].name);
	}
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		for (size_t i = 0; i < choice->n; i++)
			copy_column(lull_frame_room(f, i, n), &part->cells[choice->cols[i]], cols,
				    dur_col, n);
		f->n_rows += n;
	}
	lull_cursor_release(&c);
}

/* ---- row by row ---- */

static void walk_part(struct lull_frame *f, const struct choice *choice,
		      const struct lull_vtab_part *part)
{
	const struct lull_filter all = {
		.used = used_of(choice), .start_hi = UINT64_MAX, .end_hi = UINT64_MAX, .key_col = -1
	};
	struct lull_walk *walk;

	if (is_plain(choice, part)) {
		copy_blocks(f, choice, part);
		return;
	}
	walk = part->ops->begin(part);
	if (!walk)
		return;
	part->ops->filter(walk, &all);
	while (part->ops->next(walk)) {
		for (size_t i = 0; i < choice->n; i++) {
			struct lull_value v = part->ops->value(walk, choice->cols[i]);

			add_value(f, i, &v);
		}
		lull_frame_end_row(f);
	}
	part->ops->end(walk);
}

/* Rows that are computed are read through SQL: they are short. */
static int read_by_sql(struct lull_frame *f, struct lull_query *q, const struct choice *choice,
		       struct lull_err *err)
{
	static const struct lull_query_limits none = { 0 };
	struct lull_str sql = LULL_STR_INIT;
	int rc;

	for (size_t i = 0; i < choice->n; i++)
		lull_str_addf(&sql, "%s`%s`", i ? ", " : "SELECT ",
			      choice->table->cols[choice->cols[i]].name);
	lull_str_addf(&sql, " FROM `%s`", choice->table->name);
	rc = lull_frame_query(f, q, lull_str_text(&sql), &none, err);
	lull_str_release(&sql);
	return rc;
}

static bool is_walked(const struct lull_vtab *t)
{
	for (int p = 0; p < t->n_parts; p++)
		if (!t->parts[p].ops->value)
			return false;
	return true;
}

static int find_column(const struct lull_vtab *t, const char *name, int *col, struct lull_err *err)
{
	struct lull_nearest near = { .word = name };

	for (*col = 0; *col < t->n_cols; ++*col) {
		if (!strcasecmp(t->cols[*col].name, name))
			return LULL_OK;
		lull_nearest_add(&near, t->cols[*col].name);
	}
	return lull_fail(err, LULL_E_USAGE, "table %s has no column %s%s%s%s", t->name, name,
			 near.best ? "; did you mean " : "", near.best ? near.best : "",
			 near.best ? "?" : "");
}

static int choose(struct choice *choice, const char *const *names, size_t n_names,
		  struct lull_err *err)
{
	choice->n = n_names ? n_names : (size_t)choice->table->n_cols;
	choice->cols = lull_alloc(choice->n, sizeof(*choice->cols));
	for (size_t i = 0; i < choice->n; i++) {
		choice->cols[i] = (int)i;
		if (n_names && find_column(choice->table, names[i], &choice->cols[i], err))
			return err->code;
	}
	return LULL_OK;
}

int lull_frame_table(struct lull_frame *f, struct lull_query *q, const char *table,
		     const char *const *names, size_t n_names, struct lull_err *err)
{
	struct choice choice = { .table = lull_vtabs_find(&q->tables, table) };
	int rc;

	*f = (struct lull_frame){ 0 };
	if (!choice.table)
		return lull_query_no_table(q, table, err);
	rc = choose(&choice, names, n_names, err);
	if (!rc && !is_walked(choice.table)) {
		rc = read_by_sql(f, q, &choice, err);
	} else if (!rc) {
		q->is_stopped = false;
		lull_frame_init(f, choice.n);
		for (size_t i = 0; i < choice.n; i++)
			lull_frame_name(f, i, choice.table->cols[choice.cols[i]].name);
		for (int p = 0; p < choice.table->n_parts; p++)
			walk_part(f, &choice, &choice.table->parts[p]);
	}
	free(choice.cols);
	return rc;
}

/* How many rows there are; nothing where that has to be computed. */
static void add_n_rows(struct lull_frame *f, size_t c, const struct lull_vtab *t)
{
	for (int p = 0; p < t->n_parts; p++) {
		if (t->parts[p].make || t->parts[p].test.kind != LULL_TEST_NONE) {
			lull_frame_add_null(f, c);
			return;
		}
	}
	lull_frame_add_int(f, c, (i64)lull_vtab_n_rows(t));
}

void lull_frame_catalog(struct lull_frame *f, struct lull_query *q)
{
	static const char *const names[] = { "table", "column", "type", "rows", "doc" };
	struct lull_vtab *const *all = q->tables.all.at;

	lull_frame_init(f, LULL_COUNT_OF(names));
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		lull_frame_name(f, i, names[i]);
	for (size_t i = 0; i < q->tables.all.n; i++) {
		/* As in SQL: tables of an nsys export are there if they have rows. */
		if (all[i]->kind == LULL_VTAB_NSYS && !lull_vtab_n_rows(all[i]))
			continue;
		for (int c = 0; c < all[i]->n_cols; c++) {
			const struct lull_vtab_col *col = &all[i]->cols[c];

			lull_frame_add_text(f, 0, all[i]->name, strlen(all[i]->name));
			lull_frame_add_text(f, 1, col->name, strlen(col->name));
			lull_frame_add_text(f, 2, col->decl, strlen(col->decl));
			add_n_rows(f, 3, all[i]);
			lull_frame_add_text(f, 4, all[i]->doc, strlen(all[i]->doc));
			lull_frame_end_row(f);
		}
	}
}
