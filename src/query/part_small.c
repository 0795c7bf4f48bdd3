/*
 * Rows of dimensions, strings and made tables: arrays in memory.
 *
 * All three are walked by number; a key is the number itself, except in made rows, where it is
 * searched for.
 */
#include "query/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/values.h"

struct walk {
	struct lull_walk base;
	const u8 *dim; /* rows of a dimension */
	i64 next;      /* number of the row to come */
	i64 end;       /* after the last one */
	i64 now;
	int key_col; /* made rows: searched for, -1 if none */
	i64 key;
};

static struct lull_walk *begin(const struct lull_vtab_part *part)
{
	struct walk *w = lull_alloc(1, sizeof(*w));

	w->base.part = part;
	return &w->base;
}

static void end(struct lull_walk *walk)
{
	free(walk);
}

static bool next(struct lull_walk *walk)
{
	struct walk *w = (struct walk *)walk;

	if (w->next >= w->end)
		return false;
	w->now = w->next++;
	return true;
}

static i64 rowid(const struct lull_walk *walk)
{
	return ((const struct walk *)walk)->now;
}

/* Rows from `first` to before `last`, or the one that the key names. */
static void set_range(struct walk *w, const struct lull_filter *f, i64 first, i64 last)
{
	w->next = first;
	w->end = f->is_empty ? first : last;
	if (f->key_col < 0)
		return;
	if (f->key < first || f->key >= last) {
		w->end = w->next;
		return;
	}
	w->next = f->key;
	w->end = f->is_empty ? f->key : f->key + 1;
}

/* ---- dimensions: ids from 1 ---- */

static void filter_dim(struct lull_walk *walk, const struct lull_filter *f)
{
	struct walk *w = (struct walk *)walk;
	size_t n;

	w->dim = lull_reader_dim_rows(walk->part->reader, walk->part->table, &n);
	set_range(w, f, 1, (i64)n + 1);
}

static void column_dim(struct lull_walk *walk, sqlite3_context *to, int col)
{
	const struct walk *w = (const struct walk *)walk;
	const struct lull_vtab_part *part = walk->part;
	const struct lull_cell *cell = &part->cells[col];
	const struct lull_col_desc *desc;
	struct lull_value value;
	u64 raw = 0;

	/* A damaged schema may leave a table no other column. */
	if (!col) {
		sqlite3_result_int64(to, w->now);
		return;
	}
	desc = &part->table->cols[cell->col];
	/* Little-endian, as everything that lull runs on. */
	memcpy(&raw, w->dim + (size_t)(w->now - 1) * part->table->row_bytes + desc->row_off,
	       desc->size_bytes);
	value = lull_cell_get(part, cell, (i64)raw);
	lull_value_give(to, &value);
}

static u64 n_rows_dim(const struct lull_vtab_part *part)
{
	return lull_reader_n_dim(part->reader, part->table->id);
}

const struct lull_part_ops lull_part_dim = {
	.begin = begin,
	.filter = filter_dim,
	.next = next,
	.column = column_dim,
	.rowid = rowid,
	.end = end,
	.n_rows = n_rows_dim,
};

/* ---- strings: ids from 0, which is the empty one ---- */

static void filter_strings(struct lull_walk *walk, const struct lull_filter *f)
{
	set_range((struct walk *)walk, f, 0, (i64)lull_values_n_strings(walk->part->values) + 1);
}

static void column_strings(struct lull_walk *walk, sqlite3_context *to, int col)
{
	const struct walk *w = (const struct walk *)walk;
	const char *text;
	size_t len;

	if (!col) {
		sqlite3_result_int64(to, w->now);
		return;
	}
	text = lull_values_string(walk->part->values, (u32)w->now, &len);
	/* Those that only nsys has may move when more are made. */
	sqlite3_result_text(to, text, (int)len,
			    w->now > walk->part->values->n_strings ? SQLITE_TRANSIENT
								   : SQLITE_STATIC);
}

static u64 n_rows_strings(const struct lull_vtab_part *part)
{
	return (u64)lull_values_n_strings(part->values) + 1;
}

const struct lull_part_ops lull_part_strings = {
	.begin = begin,
	.filter = filter_strings,
	.next = next,
	.column = column_strings,
	.rowid = rowid,
	.end = end,
	.n_rows = n_rows_strings,
};

/* ---- made rows ---- */

static const struct lull_made_rows *rows_of(const struct lull_vtab_part *part)
{
	struct lull_vtab_part *mine = (struct lull_vtab_part *)part;

	if (!mine->rows) {
		mine->rows = lull_rows_new((size_t)part->n_cols);
		part->make(mine->rows, part->values);
	}
	return mine->rows;
}

static void filter_made(struct lull_walk *walk, const struct lull_filter *f)
{
	struct walk *w = (struct walk *)walk;

	w->next = 0;
	w->end = f->is_empty ? 0 : (i64)lull_rows_len(rows_of(walk->part));
	w->key_col = f->key_col;
	w->key = f->key;
}

static bool next_made(struct lull_walk *walk)
{
	const struct walk *w = (const struct walk *)walk;
	const struct lull_made_rows *rows = rows_of(walk->part);

	while (next(walk)) {
		const struct lull_row_cell *cell;

		if (w->key_col < 0)
			return true;
		cell = lull_rows_get(rows, (size_t)w->now, (size_t)w->key_col);
		if (cell->kind == LULL_ROW_INT && cell->i == w->key)
			return true;
	}
	return false;
}

static struct lull_value value_made(const struct lull_walk *walk, int col)
{
	const struct walk *w = (const struct walk *)walk;
	const struct lull_made_rows *rows = walk->part->rows;
	const struct lull_row_cell *cell = lull_rows_get(rows, (size_t)w->now, (size_t)col);

	switch (cell->kind) {
	case LULL_ROW_INT:
		return (struct lull_value){ .kind = LULL_IS_INT, .i = cell->i };
	case LULL_ROW_REAL:
		return (struct lull_value){ .kind = LULL_IS_REAL, .f = cell->f };
	case LULL_ROW_TEXT:
		return (struct lull_value){ .kind = LULL_IS_TEXT,
					    .text = lull_rows_get_text(rows, cell),
					    .len = cell->len };
	default:
		return (struct lull_value){ .kind = LULL_IS_NULL };
	}
}

static void column_made(struct lull_walk *walk, sqlite3_context *to, int col)
{
	struct lull_value value = value_made(walk, col);

	lull_value_give(to, &value);
}

/* A guess for those that take long to make: more would make every plan wait for it. */
#define COSTLY_ROWS 1000

static u64 n_rows_made(const struct lull_vtab_part *part)
{
	if (part->is_costly && !part->rows)
		return COSTLY_ROWS;
	return lull_rows_len(rows_of(part));
}

const struct lull_part_ops lull_part_made = {
	.begin = begin,
	.filter = filter_made,
	.next = next_made,
	.column = column_made,
	.value = value_made,
	.rowid = rowid,
	.end = end,
	.n_rows = n_rows_made,
};
