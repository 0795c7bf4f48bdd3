/* What facts refer to: strings, dimension tables, and the schema that the file carries. */
#include "trace/reader_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/*
 * Rows that blocks which are missing may have held, for each row that is there, and at least.
 * Damage larger than that costs rows; without a limit a few bytes could make the reader take
 * gigabytes.
 */
#define MISSING_FACTOR 64u
#define MISSING_ROWS   LULL_MAX_ROWS

/* ---- which blocks there are ---- */

static int compare_strings(const void *a, const void *b)
{
	const struct lull_string_block *x = a, *y = b;

	return (x->first_id > y->first_id) - (x->first_id < y->first_id);
}

/* True if blocks are numbered that are not in the file: a recovery left them out. */
static bool has_holes(const struct lull_reader *r)
{
	const struct lull_entry *e = r->entries.at;

	for (size_t i = 0; i < r->entries.n; i++)
		if (e[i].seq >= r->entries.n)
			return true;
	return false;
}

/*
 * The largest id of the table whose first entry is `first`. Ids are dense, so it cannot exceed the
 * rows there are, unless blocks are missing.
 */
static struct lull_dim_size measure(const struct lull_reader *r, size_t first, bool is_holed)
{
	const struct lull_entry *e = (const struct lull_entry *)r->entries.at + first;
	const struct lull_entry *end = (const struct lull_entry *)r->entries.at + r->entries.n;
	struct lull_dim_size size = { .table_id = e->table_id };
	u64 n_rows = 0, largest = 0;

	for (; e < end && e->table_id == size.table_id; e++) {
		if (e->kind != LULL_BLOCK_KEYED)
			continue;
		n_rows += e->n_rows;
		largest = e->max_end > largest ? e->max_end : largest;
	}
	if (is_holed && n_rows)
		n_rows = n_rows * MISSING_FACTOR + MISSING_ROWS;
	if (largest > n_rows)
		largest = n_rows;
	size.n = largest < UINT32_MAX ? (u32)largest : UINT32_MAX - 1;
	return size;
}

void lull_reader_index_dims(struct lull_reader *r)
{
	const struct lull_entry *e = r->entries.at;
	bool is_holed = has_holes(r);

	for (size_t i = 0; i < r->entries.n; i++) {
		if (e[i].kind == LULL_BLOCK_STRINGS) {
			struct lull_string_block s = { .entry_ix = i,
						       .first_id = e[i].first_id,
						       .n = e[i].n_rows };

			lull_vec_add(&r->strings, &s, 1);
		}
		if (i == 0 || e[i].table_id != e[i - 1].table_id) {
			struct lull_dim_size size = measure(r, i, is_holed);

			if (size.n)
				lull_vec_add(&r->dim_sizes, &size, 1);
		}
	}
	if (r->strings.n)
		lull_sort(r->strings.at, r->strings.n, sizeof(struct lull_string_block),
			  compare_strings);
}

void lull_reader_release_dims(struct lull_reader *r)
{
	struct lull_string_block *s = r->strings.at;
	struct lull_dim_rows **d = r->dims.at;

	for (size_t i = 0; i < r->strings.n; i++)
		lull_text_list_release(&s[i].list);
	for (size_t i = 0; i < r->dims.n; i++) {
		free(d[i]->rows);
		free(d[i]);
	}
	lull_vec_release(&r->strings);
	lull_vec_release(&r->dims);
	lull_vec_release(&r->dim_sizes);
	lull_schema_release(&r->schema);
}

/* ---- strings ---- */

static void load_strings(struct lull_reader *r, struct lull_string_block *s)
{
	struct lull_block_view v;

	s->is_loaded = true;
	if (!lull_reader_open_block(r, s->entry_ix, &v))
		return;
	if (lull_decode_texts(r->decoder, &v, &s->list))
		lull_reader_mark_damaged(r, s->entry_ix);
}

/* The last block that begins at or before this id. */
static struct lull_string_block *find_strings(const struct lull_reader *r, u32 id)
{
	struct lull_string_block *s = r->strings.at;
	size_t lo = 0, hi = r->strings.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s[mid].first_id <= id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &s[lo - 1] : NULL;
}

u32 lull_reader_n_strings(const struct lull_reader *r)
{
	const struct lull_string_block *s = r->strings.at;
	u64 largest = 0;

	for (size_t i = 0; i < r->strings.n; i++)
		if ((u64)s[i].first_id + s[i].n > largest)
			largest = (u64)s[i].first_id + s[i].n;
	if (largest > UINT32_MAX)
		largest = UINT32_MAX;
	return largest ? (u32)largest - 1 : 0;
}

const char *lull_reader_string(struct lull_reader *r, u32 id, size_t *len)
{
	struct lull_string_block *s = id ? find_strings(r, id) : NULL;
	const char *text = id ? "?" : "";
	size_t n = id ? 1 : 0;

	if (s && !s->is_loaded)
		load_strings(r, s);
	if (s && id - s->first_id < s->list.n) {
		const u32 *offs = s->list.offs;
		u32 ix = id - s->first_id;

		text = s->list.bytes + offs[ix];
		n = offs[ix + 1] - offs[ix] - 1;
	}
	if (len)
		*len = n;
	return text;
}

/* ---- dimensions ---- */

u32 lull_reader_n_dim(const struct lull_reader *r, u16 table_id)
{
	const struct lull_dim_size *s = r->dim_sizes.at;

	for (size_t i = 0; i < r->dim_sizes.n; i++)
		if (s[i].table_id == table_id)
			return s[i].n;
	return 0;
}

/* The DIM table that this column points into, or NULL. */
static const struct lull_table_desc *target_of(struct lull_reader *r,
					       const struct lull_col_desc *col)
{
	const struct lull_table_desc *t;
	const struct lull_schema *s;

	if (lull_block_type(col) != LULL_TYPE_REF || strcmp(col->type, "str") == 0)
		return NULL;
	t = lull_table_by_name(col->type);
	if (t)
		return t;
	s = lull_reader_schema(r);
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->tables[i].name, col->type) == 0)
			return &s->tables[i];
	return NULL;
}

void lull_reader_check_ids(struct lull_reader *r, const struct lull_col_desc *col, u32 *ids,
			   size_t n)
{
	const struct lull_table_desc *target = target_of(r, col);
	u32 max = 0, limit;

	if (!target)
		return;
	limit = lull_reader_n_dim(r, target->id);
	for (size_t i = 0; i < n; i++)
		max = ids[i] > max ? ids[i] : max;
	for (size_t i = 0; i < n && max > limit; i++) {
		r->n_dangling += ids[i] > limit;
		ids[i] = ids[i] > limit ? 0 : ids[i];
	}
}

/* References of a table to itself point to rows before: following them ends, whatever the file
 * says. */
static void check_order(struct lull_reader *r, const u32 *row_ids, u32 *refs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		r->n_dangling += refs[i] >= row_ids[i] && refs[i];
		refs[i] = refs[i] < row_ids[i] ? refs[i] : 0;
	}
}

/* Columns of one block into the rows that their ids name; false if an id is not in the table. */
static bool scatter(struct lull_reader *r, struct lull_dim_rows *d,
		    const struct lull_decode_job *job, size_t n)
{
	u32 row_bytes = d->table->row_bytes;

	for (size_t i = 0; i < n; i++)
		if (job->ids[i] == 0 || job->ids[i] > d->n)
			return false;
	for (unsigned c = 0; c < d->table->n_cols; c++) {
		const struct lull_col_desc *col = &d->table->cols[c];
		const struct lull_table_desc *target = target_of(r, col);
		const u8 *from = job->cols[c];

		lull_reader_check_ids(r, col, job->cols[c], n);
		if (target && target->id == d->table->id)
			check_order(r, job->ids, job->cols[c], n);
		for (size_t i = 0; i < n; i++, from += col->size_bytes)
			memcpy(d->rows + (size_t)(job->ids[i] - 1) * row_bytes + col->row_off, from,
			       col->size_bytes);
	}
	return true;
}

static void load_block(struct lull_reader *r, struct lull_dim_rows *d, size_t ix,
		       struct lull_decode_job *job)
{
	struct lull_block_view v;
	int rc;

	if (!lull_reader_open_block(r, ix, &v))
		return;
	rc = lull_decode_rows(r->decoder, &v, job);
	if (job->unreadable)
		lull_reader_warn(r, d->table, job->unreadable);
	if (rc || !scatter(r, d, job, v.head.n_rows))
		lull_reader_mark_damaged(r, ix);
}

static int compare_seq(const void *a, const void *b)
{
	const struct lull_entry *const *x = a, *const *y = b;

	return ((*x)->seq > (*y)->seq) - ((*x)->seq < (*y)->seq);
}

/* All blocks of the table, in the order they were written: the last one wins. */
static void load_rows(struct lull_reader *r, struct lull_dim_rows *d)
{
	const struct lull_entry *entries = r->entries.at;
	struct lull_decode_job job = { .table = d->table };
	u32 max_rows = lull_reader_most_rows(r, d->table->id);
	void *cols[LULL_MAX_COLS];
	struct lull_vec order;

	lull_vec_init(&order, sizeof(entries));
	for (size_t i = 0; i < r->entries.n; i++)
		if (entries[i].table_id == d->table->id && entries[i].kind == LULL_BLOCK_KEYED)
			*(const struct lull_entry **)lull_vec_push(&order) = &entries[i];
	if (order.n)
		lull_sort(order.at, order.n, sizeof(entries), compare_seq);
	job.ids = lull_alloc(max_rows + 1u, sizeof(*job.ids));
	for (unsigned c = 0; c < d->table->n_cols; c++)
		cols[c] = lull_alloc(max_rows + 1u, d->table->cols[c].size_bytes);
	job.cols = cols;
	for (size_t i = 0; i < order.n; i++)
		load_block(r, d, (size_t)(((const struct lull_entry **)order.at)[i] - entries),
			   &job);
	for (unsigned c = 0; c < d->table->n_cols; c++)
		free(cols[c]);
	free(job.ids);
	lull_vec_release(&order);
}

const void *lull_reader_dim_rows(struct lull_reader *r, const struct lull_table_desc *table,
				 size_t *n)
{
	struct lull_dim_rows **known = r->dims.at, *d;

	for (size_t i = 0; i < r->dims.n; i++)
		if (known[i]->table == table) {
			*n = known[i]->n;
			return known[i]->rows;
		}
	d = lull_alloc(1, sizeof(*d));
	*d = (struct lull_dim_rows){ .table = table, .n = lull_reader_n_dim(r, table->id) };
	d->rows = lull_alloc((size_t)d->n + 1, table->row_bytes + 1u);
	lull_vec_add(&r->dims, &d, 1);
	if (d->n)
		load_rows(r, d);
	*n = d->n;
	return d->rows;
}

const void *lull_reader_dim(struct lull_reader *r, enum lull_table table, size_t *n)
{
	return lull_reader_dim_rows(r, lull_table_find((u16)table), n);
}

/* ---- schema ---- */

static bool load_schema(struct lull_reader *r, size_t ix)
{
	struct lull_text_list list;
	struct lull_block_view v;
	u32 *lens;

	if (!lull_reader_open_block(r, ix, &v))
		return false;
	if (lull_decode_texts(r->decoder, &v, &list)) {
		lull_reader_mark_damaged(r, ix);
		return false;
	}
	/* The NUL after each line belongs to it here: it ends the last field. */
	lens = lull_alloc(list.n + 1, sizeof(*lens));
	for (size_t i = 0; i < list.n; i++)
		lens[i] = list.offs[i + 1] - list.offs[i];
	lull_schema_parse(&r->schema, list.bytes, lens, list.n);
	free(lens);
	lull_text_list_release(&list);
	return r->schema.n > 0;
}

static void take_own_schema(struct lull_reader *r)
{
	struct lull_str bytes = LULL_STR_INIT;
	struct lull_vec lens;

	lull_vec_init(&lens, sizeof(u32));
	lull_schema_lines(&bytes, &lens);
	lull_schema_parse(&r->schema, lull_str_text(&bytes), lens.at, lens.n);
	lull_str_release(&bytes);
	lull_vec_release(&lens);
}

const struct lull_schema *lull_reader_schema(struct lull_reader *r)
{
	const struct lull_entry *e = r->entries.at;

	if (r->has_schema)
		return &r->schema;
	r->has_schema = true;
	for (size_t i = 0; i < r->entries.n && !r->schema.n; i++)
		if (e[i].kind == LULL_BLOCK_SCHEMA)
			load_schema(r, i);
	if (!r->schema.n)
		take_own_schema(r);
	return &r->schema;
}

const char *lull_reader_fact(struct lull_reader *r, const char *key)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(lull_reader_string(r, rows[i].key, NULL), key) == 0)
			return lull_reader_string(r, rows[i].value, NULL);
	return "";
}
