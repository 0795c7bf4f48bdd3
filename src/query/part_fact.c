/*
 * Rows of a FACT table, straight from its columns.
 *
 * A walk goes over the blocks that the index does not rule out, decodes the columns in use, and
 * skips rows outside the bounds. A join asks the same walk again and again: then decoded blocks are
 * kept, and an equality with a key column is looked up in a hash of the whole table.
 */
#include "query/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "query/values.h"
#include "trace/file_frame.h"

/* Blocks that a walk keeps when it is asked again. */
#define MAX_SLOTS 32

/* A decoded block. */
struct slot {
	size_t block_ix;
	u64 used_at; /* when, in lookups of the walk */
	size_t n;
	struct lull_cursor cursor;
	const void *cols[LULL_MAX_COLS];
};

/* Rows of a key column by value: chains of row numbers, first to last. */
struct lull_key_index {
	u32 *heads; /* by hash: row number + 1, 0 if none */
	u32 *next;  /* by row number: row number + 1 */
	u32 mask;
	u32 n_rows;
};

struct walk {
	struct lull_walk base;
	struct lull_filter filter;
	size_t first_ix, end_ix; /* blocks of the table */
	size_t next_ix;		 /* block to look at next */
	u64 *first_row;		 /* number of the first row of each block */
	struct slot *slots[MAX_SLOTS];
	int n_slots;
	u64 n_lookups;
	bool is_repeated;
	bool has_bounds;
	bool is_tested; /* some rows are not of this part */
	struct slot *now;
	size_t i;
	u32 chain; /* of a lookup: row number + 1 */
	int dur_col;
};

static const struct lull_entry *entries_of(const struct lull_vtab_part *part, size_t *n)
{
	return lull_reader_blocks(part->reader, n);
}

static i64 load(const void *column, u8 size_bytes, size_t i)
{
	return (i64)lull_load_at(column, size_bytes, i);
}

/* ---- walking ---- */

static struct lull_walk *begin(const struct lull_vtab_part *part)
{
	struct walk *w = lull_alloc(1, sizeof(*w));
	size_t n;
	const struct lull_entry *e = entries_of(part, &n);
	u64 row = 0;

	w->base.part = part;
	w->dur_col = lull_table_column(part->table, "dur_ns");
	while (w->first_ix < n && e[w->first_ix].table_id != part->table->id)
		w->first_ix++;
	w->end_ix = w->first_ix;
	while (w->end_ix < n && e[w->end_ix].table_id == part->table->id)
		w->end_ix++;
	w->first_row = lull_alloc(w->end_ix - w->first_ix + 1, sizeof(*w->first_row));
	for (size_t i = w->first_ix; i < w->end_ix; i++) {
		w->first_row[i - w->first_ix] = row;
		row += e[i].n_rows;
	}
	w->first_row[w->end_ix - w->first_ix] = row;
	return &w->base;
}

static void drop_slots(struct walk *w)
{
	for (int s = 0; s < w->n_slots; s++) {
		lull_cursor_release(&w->slots[s]->cursor);
		free(w->slots[s]);
	}
	w->n_slots = 0;
	w->now = NULL;
}

static void end(struct lull_walk *walk)
{
	struct walk *w = (struct walk *)walk;

	drop_slots(w);
	free(w->first_row);
	free(w);
}

static void want(const struct walk *w, struct lull_cursor *c, bool *has, int col)
{
	if (col < 0 || has[col])
		return;
	has[col] = true;
	lull_cursor_want(c, w->base.part->table->cols[col].name);
}

/* Name the columns that the cells in use are made of. */
static void want_columns(const struct walk *w, struct lull_cursor *c)
{
	const struct lull_vtab_part *part = w->base.part;
	bool has[LULL_MAX_COLS] = { false };

	want(w, c, has, 0);
	if (w->is_tested)
		want(w, c, has, part->test.cell.col);
	if (w->filter.end_lo || w->filter.end_hi != UINT64_MAX)
		want(w, c, has, w->dur_col);
	for (int k = 0; k < part->n_cols; k++) {
		const struct lull_cell *cell = &part->cells[k];

		if (!lull_filter_uses(w->filter.used, k) && k != w->filter.key_col)
			continue;
		if (cell->kind == LULL_CELL_IS_END)
			want(w, c, has, w->dur_col);
		if (cell->kind == LULL_CELL_IS_COLUMN)
			want(w, c, has, cell->col);
		want(w, c, has, cell->plus_col);
		want(w, c, has, cell->when_col);
	}
}

static struct slot *take_slot(struct walk *w)
{
	struct slot *oldest = w->n_slots ? w->slots[0] : NULL;

	if (w->n_slots < (w->is_repeated ? MAX_SLOTS : 1)) {
		struct slot *s = w->slots[w->n_slots++] = lull_alloc(1, sizeof(*s));

		lull_cursor_init_table(&s->cursor, w->base.part->reader, w->base.part->table, 0,
				       UINT64_MAX);
		want_columns(w, &s->cursor);
		return s;
	}
	for (int i = 1; i < w->n_slots; i++)
		if (w->slots[i]->used_at < oldest->used_at)
			oldest = w->slots[i];
	return oldest;
}

/* Make this block the one the walk is in. */
static void enter(struct walk *w, size_t block_ix)
{
	struct slot *s = NULL;

	if (w->now && w->now->block_ix == block_ix)
		return;
	w->n_lookups++;
	for (int i = 0; i < w->n_slots && !s; i++)
		if (w->slots[i]->n && w->slots[i]->block_ix == block_ix)
			s = w->slots[i];
	if (!s) {
		s = take_slot(w);
		s->block_ix = block_ix;
		s->n = lull_cursor_read(&s->cursor, block_ix, s->cols);
	}
	s->used_at = w->n_lookups;
	w->now = s;
}

/* ---- keys ---- */

static u32 hash_key(u64 key, u32 mask)
{
	return (u32)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
}

void lull_key_index_free(struct lull_key_index *index)
{
	if (!index)
		return;
	free(index->heads);
	free(index->next);
	free(index);
}

/* Hash the column; rows from last to first, so that chains go from first to last. */
static struct lull_key_index *build_index(struct walk *w)
{
	const struct lull_vtab_part *part = w->base.part;
	u16 col = part->cells[w->filter.key_col].col;
	struct lull_key_index *index = lull_alloc(1, sizeof(*index));
	u64 n_rows = w->first_row[w->end_ix - w->first_ix];
	struct lull_cursor c;
	const void *cols[LULL_MAX_COLS];

	index->n_rows = (u32)n_rows;
	index->mask = 1;
	while (index->mask < n_rows)
		index->mask = index->mask * 2 + 1;
	index->heads = lull_alloc((size_t)index->mask + 1, sizeof(u32));
	index->next = lull_alloc(n_rows + 1, sizeof(u32));
	lull_cursor_init_table(&c, part->reader, part->table, 0, UINT64_MAX);
	lull_cursor_want(&c, part->table->cols[col].name);
	for (size_t b = w->end_ix; b > w->first_ix && !*part->values->is_stopped; b--) {
		size_t n = lull_cursor_read(&c, b - 1, cols);
		u64 row = w->first_row[b - 1 - w->first_ix];

		for (size_t i = n; i > 0; i--) {
			u64 key = (u64)load(cols[col], part->table->cols[col].size_bytes, i - 1);
			u32 *head = &index->heads[hash_key(key, index->mask)];

			index->next[row + i - 1] = *head;
			*head = (u32)(row + i);
		}
	}
	lull_cursor_release(&c);
	return index;
}

/* The block that holds this row. */
static size_t block_of(const struct walk *w, u64 row)
{
	size_t lo = 0, hi = w->end_ix - w->first_ix;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;

		if (w->first_row[mid] <= row)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static bool next_by_key(struct walk *w)
{
	const struct lull_vtab_part *part = w->base.part;
	u16 col = part->cells[w->filter.key_col].col;

	while (w->chain) {
		u64 row = w->chain - 1;
		size_t block = block_of(w, row);

		w->chain = part->index->next[row];
		enter(w, w->first_ix + block);
		w->i = (size_t)(row - w->first_row[block]);
		if (w->i < w->now->n && load(w->now->cols[col], part->table->cols[col].size_bytes,
					     w->i) == w->filter.key)
			return true;
	}
	return false;
}

/* ---- rows ---- */

static void filter(struct lull_walk *walk, const struct lull_filter *f)
{
	struct walk *w = (struct walk *)walk;
	struct lull_vtab_part *part = (struct lull_vtab_part *)w->base.part;

	/* The same statement always uses the same columns; only its bounds change. */
	if (w->n_slots && (w->filter.used != f->used || w->filter.key_col != f->key_col))
		drop_slots(w);
	w->is_repeated = w->n_slots > 0;
	w->filter = *f;
	w->next_ix = f->is_empty ? w->end_ix : w->first_ix;
	w->now = NULL;
	w->chain = 0;
	w->has_bounds =
		f->start_lo || f->end_lo || f->start_hi != UINT64_MAX || f->end_hi != UINT64_MAX;
	lull_cells_prepare(part, f->used);
	if (part->test.kind != LULL_TEST_NONE) {
		lull_test_prepare(part);
		w->is_tested = part->test.holds == LULL_TEST_SOMETIMES;
		/* None of those that are wanted: nothing to look at. */
		if (!w->is_tested && part->test.kind == LULL_TEST_ONLY) {
			w->next_ix = w->end_ix;
			return;
		}
	}
	if (f->key_col < 0 || f->is_empty)
		return;
	if (!part->index)
		part->index = build_index(w);
	w->is_repeated = true;
	w->chain = part->index->heads[hash_key((u64)f->key, part->index->mask)];
}

/* Whether the index allows rows inside the bounds in this block. */
static bool may_hold(const struct lull_filter *f, const struct lull_entry *e)
{
	return e->kind == LULL_BLOCK_ROWS && e->max_start >= f->start_lo &&
	       e->min_start <= f->start_hi && e->max_end >= f->end_lo && e->min_start <= f->end_hi;
}

static bool next_block(struct walk *w)
{
	size_t n;
	const struct lull_entry *e = entries_of(w->base.part, &n);

	while (w->next_ix < w->end_ix && !*w->base.part->values->is_stopped) {
		size_t ix = w->next_ix++;

		if (!may_hold(&w->filter, &e[ix]))
			continue;
		enter(w, ix);
		if (w->now->n) {
			w->i = 0;
			return true;
		}
	}
	w->now = NULL;
	return false;
}

/* Whether row i of this block lies inside the bounds. */
static bool is_inside(const struct walk *w)
{
	const struct lull_filter *f = &w->filter;
	u64 start = ((const u64 *)w->now->cols[0])[w->i];
	u64 end_ns = start;

	if (start < f->start_lo || start > f->start_hi)
		return false;
	if (!f->end_lo && f->end_hi == UINT64_MAX)
		return true;
	if (w->dur_col >= 0)
		end_ns += ((const u64 *)w->now->cols[w->dur_col])[w->i];
	return end_ns >= f->end_lo && end_ns <= f->end_hi;
}

/* Whether row i of this block is a row of this part. */
static bool is_ours(const struct walk *w)
{
	const struct lull_row_test *test = &w->base.part->test;
	u16 col = test->cell.col;
	i64 raw = load(w->now->cols[col], w->base.part->table->cols[col].size_bytes, w->i);
	bool holds = lull_cell_value(w->base.part, &test->cell, raw) == test->value;

	return holds == (test->kind == LULL_TEST_ONLY);
}

static bool next(struct lull_walk *walk)
{
	struct walk *w = (struct walk *)walk;

	if (w->filter.key_col >= 0) {
		while (next_by_key(w))
			if ((!w->has_bounds || is_inside(w)) && (!w->is_tested || is_ours(w)))
				return true;
		return false;
	}
	for (;;) {
		if (w->now && w->i + 1 < w->now->n)
			w->i++;
		else if (!next_block(w))
			return false;
		if ((!w->has_bounds || is_inside(w)) && (!w->is_tested || is_ours(w)))
			return true;
	}
}

/* The value of a cell and that of another column; null counts as 0. */
static i64 sum(const struct walk *w, const struct lull_cell *cell)
{
	const struct lull_vtab_part *part = w->base.part;
	const struct lull_col_desc *cols = part->table->cols;
	i64 value = lull_cell_value(
		part, cell, load(w->now->cols[cell->col], cols[cell->col].size_bytes, w->i));

	if (value == LULL_VALUE_NULL)
		value = 0;
	return value + load(w->now->cols[cell->plus_col], cols[cell->plus_col].size_bytes, w->i);
}

static struct lull_value value(const struct lull_walk *walk, int col)
{
	const struct walk *w = (const struct walk *)walk;
	const struct lull_vtab_part *part = walk->part;
	const struct lull_cell *cell = &part->cells[col];
	const struct lull_col_desc *cols = part->table->cols;
	struct lull_value out = { .kind = LULL_IS_NULL };

	if (cell->when_col >= 0 &&
	    ((u32)load(w->now->cols[cell->when_col], cols[cell->when_col].size_bytes, w->i) &
	     cell->when_mask) != cell->when_value)
		return out;
	switch (cell->kind) {
	case LULL_CELL_IS_NULL:
		return out;
	case LULL_CELL_IS_CONSTANT:
		out.i = cell->constant;
		break;
	case LULL_CELL_IS_END:
		out.i = ((const i64 *)w->now->cols[0])[w->i];
		if (w->dur_col >= 0)
			out.i = (i64)((u64)out.i + ((const u64 *)w->now->cols[w->dur_col])[w->i]);
		break;
	default:
		if (cell->plus_col < 0)
			return lull_cell_get(
				part, cell,
				load(w->now->cols[cell->col], cols[cell->col].size_bytes, w->i));
		out.i = sum(w, cell);
	}
	out.kind = LULL_IS_INT;
	return out;
}

/* A fast path for most queries: numbers that are columns, and ends. */
static void column(struct lull_walk *walk, sqlite3_context *to, int col)
{
	const struct walk *w = (const struct walk *)walk;
	const struct lull_cell *cell = &walk->part->cells[col];
	const void *at = w->now->cols[cell->col];
	struct lull_value v;

	if (cell->is_plain) {
		sqlite3_result_int64(to, load(at, cell->size_bytes, w->i));
	} else if (cell->is_plain_lut) {
		i64 number = cell->lut[((const u32 *)at)[w->i]];

		if (number != LULL_VALUE_NULL)
			sqlite3_result_int64(to, number);
	} else {
		v = value(walk, col);
		lull_value_give(to, &v);
	}
}

static i64 rowid(const struct lull_walk *walk)
{
	const struct walk *w = (const struct walk *)walk;

	return (i64)(w->first_row[w->now->block_ix - w->first_ix] + w->i);
}

static u64 n_rows(const struct lull_vtab_part *part)
{
	return lull_reader_stats(part->reader, part->table->id).n_rows;
}

const struct lull_part_ops lull_part_fact = {
	.begin = begin,
	.filter = filter,
	.next = next,
	.column = column,
	.value = value,
	.rowid = rowid,
	.end = end,
	.n_rows = n_rows,
};
