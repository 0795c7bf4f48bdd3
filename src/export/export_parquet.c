/*
 * parquet: a folder with a Parquet file for each table that has rows.
 *
 *	duckdb -c "SELECT launch_name, sum(dur_ns) FROM 'report1-parquet/kernel.parquet' GROUP BY 1"
 *
 * Columns are those of the report. Texts are texts, null if there is none. A reference stays a row
 * id, 0 if there is none, and is followed by what people call the row: launch, launch_name. Tables
 * that others refer to have their row ids as `id`. Times and sizes are signed, so that their
 * differences can be.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "text/utf8.h"
#include "export/export.h"
#include "export/parquet.h"

#define MAX_COLUMNS (2 * LULL_MAX_COLS + 1)

/* Where the values of a column of the file come from. */
struct origin {
	int column;  /* of the table; -1 for the row id */
	u32 *names;  /* a reference by name: string id by row id; NULL for the values themselves */
	char *title; /* of a name */
};

struct table {
	struct lull_reader *reader;
	const struct lull_table_desc *desc;
	struct origin origins[MAX_COLUMNS];
	struct lull_parquet_column columns[MAX_COLUMNS];
	size_t n_columns;
	struct lull_str valid; /* a text that had to be made valid */
	void *gathered;	       /* values of one column and block */
};

/* ---- what the columns are ---- */

static const char *text_of(void *ctx, u32 id, size_t *len)
{
	struct table *t = ctx;
	const char *text = lull_reader_string(t->reader, id, len);

	if (lull_utf8_valid(text, *len) == *len)
		return text;
	lull_str_clear(&t->valid);
	lull_utf8_add(&t->valid, text, *len);
	*len = t->valid.len;
	return t->valid.at;
}

static const char *bytes_of(void *ctx, u32 id, size_t *len)
{
	const struct table *t = ctx;

	return lull_reader_string(t->reader, id, len);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len >= n && !strcmp(name + len - n, suffix);
}

static enum lull_parquet_type type_of(const struct lull_col_desc *col)
{
	if (lull_export_is_text(col))
		return strcmp(col->name, "data") ? LULL_PARQUET_TEXT : LULL_PARQUET_BYTES;
	if (col->is_float)
		return LULL_PARQUET_F64;
	if (col->is_signed ||
	    (col->size_bytes == 8 && (ends_in(col->name, "_ns") || ends_in(col->name, "_bytes"))))
		return LULL_PARQUET_I64;
	switch (col->size_bytes) {
	case 1:
		return LULL_PARQUET_U8;
	case 2:
		return LULL_PARQUET_U16;
	case 4:
		return LULL_PARQUET_U32;
	default:
		return LULL_PARQUET_U64;
	}
}

static void add_column(struct table *t, int column, const char *name, enum lull_parquet_type type)
{
	t->origins[t->n_columns].column = column;
	t->columns[t->n_columns++] = (struct lull_parquet_column){
		.name = name,
		.type = type,
		.text = type == LULL_PARQUET_BYTES ? bytes_of : text_of,
		.ctx = t,
	};
}

/* The column by which people know the rows of a table, or -1. */
static int naming_column(const struct lull_table_desc *table)
{
	static const char *const names[] = { "name", "function", "path" };
	int ix = -1;

	for (size_t i = 0; i < LULL_COUNT_OF(names) && ix < 0; i++)
		ix = lull_table_column(table, names[i]);
	return ix >= 0 && lull_export_is_text(&table->cols[ix]) ? ix : -1;
}

/* If the column refers to a table whose rows have names: those names. */
static void add_names(struct table *t, int column)
{
	const struct lull_schema *schema = lull_reader_schema(t->reader);
	const struct lull_col_desc *col = &t->desc->cols[column];
	const struct lull_table_desc *target = NULL;
	struct lull_str title = LULL_STR_INIT;
	const u8 *rows;
	u32 *names;
	size_t n;
	int name_ix;

	for (size_t i = 0; i < schema->n && !target; i++)
		if (!strcmp(schema->tables[i].name, col->type) &&
		    schema->tables[i].kind == LULL_KIND_DIM)
			target = &schema->tables[i];
	if (!target || col->size_bytes != sizeof(u32) || (name_ix = naming_column(target)) < 0)
		return;
	rows = lull_reader_dim_rows(t->reader, target, &n);
	names = lull_alloc(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		memcpy(&names[i + 1], rows + i * target->row_bytes + target->cols[name_ix].row_off,
		       sizeof(u32));
	lull_str_addf(&title, "%s_name", col->name);
	t->origins[t->n_columns].names = names;
	t->origins[t->n_columns].title = title.at;
	add_column(t, column, title.at, LULL_PARQUET_TEXT);
}

static void plan(struct table *t)
{
	if (t->desc->kind == LULL_KIND_DIM)
		add_column(t, -1, "id", LULL_PARQUET_U32);
	for (int c = 0; c < t->desc->n_cols; c++) {
		add_column(t, c, t->desc->cols[c].name, type_of(&t->desc->cols[c]));
		add_names(t, c);
	}
}

static void release(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		free(t->origins[i].names);
		free(t->origins[i].title);
	}
	lull_str_release(&t->valid);
	free(t->gathered);
	free(t);
}

/* ---- rows ---- */

/* Some rows of a block: their numbers, NULL for the first n. */
struct rows {
	const u32 *at;
	size_t n;
};

/*
 * The values of these rows one after the other; `stride` is the distance between values of two
 * rows, `size` their length.
 */
static const void *gather(struct table *t, const u8 *values, const struct rows *rows, size_t stride,
			  size_t size)
{
	u8 *to = t->gathered;

	if (!rows->at && stride == size)
		return values;
	for (size_t i = 0; i < rows->n; i++)
		memcpy(to + i * size, values + (rows->at ? rows->at[i] : i) * stride, size);
	return to;
}

static void put_names(struct table *t, struct lull_parquet *p, size_t ix, const u32 *ids, size_t n)
{
	const u32 *names = t->origins[ix].names;
	u32 *to = t->gathered;

	for (size_t i = 0; i < n; i++)
		to[i] = names[ids[i]];
	lull_parquet_texts(p, ix, to, n);
}

/* One column of a block. */
static void put_column(struct table *t, struct lull_parquet *p, size_t ix, const void *values,
		       size_t n)
{
	if (t->origins[ix].names)
		put_names(t, p, ix, values, n);
	else if (t->columns[ix].type >= LULL_PARQUET_TEXT)
		lull_parquet_texts(p, ix, values, n);
	else
		lull_parquet_numbers(p, ix, values, n);
}

static void put_facts(struct table *t, struct lull_parquet *p, struct lull_span window)
{
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor cursor;
	u32 *held = lull_alloc(LULL_PARQUET_PAGE_ROWS, sizeof(*held));
	size_t n;

	lull_cursor_init_table(&cursor, t->reader, t->desc, window.from_ns, window.to_ns);
	while ((n = lull_cursor_next(&cursor, cols)) > 0) {
		struct rows rows = { held, lull_export_select(t->desc, cols, n, window, held) };

		if (rows.n == n)
			rows.at = NULL;
		for (size_t c = 0; c < t->n_columns && rows.n; c++) {
			int column = t->origins[c].column;
			u8 size = t->desc->cols[column].size_bytes;

			put_column(t, p, c, gather(t, cols[column], &rows, size, size), rows.n);
		}
		if (rows.n)
			lull_parquet_end_block(p);
	}
	lull_cursor_release(&cursor);
	free(held);
}

static void put_ids(struct table *t, struct lull_parquet *p, size_t ix, size_t first, size_t n)
{
	u32 *ids = t->gathered;

	for (size_t i = 0; i < n; i++)
		ids[i] = (u32)(first + i + 1);
	lull_parquet_numbers(p, ix, ids, n);
}

static void put_dims(struct table *t, struct lull_parquet *p)
{
	size_t n_rows;
	const u8 *at = lull_reader_dim_rows(t->reader, t->desc, &n_rows);

	for (size_t first = 0; first < n_rows; first += LULL_PARQUET_PAGE_ROWS) {
		size_t left = n_rows - first;
		struct rows rows = { NULL, left < LULL_PARQUET_PAGE_ROWS ? left
									 : LULL_PARQUET_PAGE_ROWS };

		for (size_t c = 0; c < t->n_columns; c++) {
			int column = t->origins[c].column;
			const struct lull_col_desc *col = &t->desc->cols[column < 0 ? 0 : column];

			if (column < 0)
				put_ids(t, p, c, first, rows.n);
			else
				put_column(t, p, c,
					   gather(t, at + first * t->desc->row_bytes + col->row_off,
						  &rows, t->desc->row_bytes, col->size_bytes),
					   rows.n);
		}
		lull_parquet_end_block(p);
	}
}

/* ---- files ---- */

static void put_meta(struct lull_parquet *p, const struct table *t)
{
	const struct lull_file_info *info = lull_reader_info(t->reader);
	struct lull_str value = LULL_STR_INIT;

	lull_parquet_meta(p, "lull.table", t->desc->name);
	lull_parquet_meta(p, "lull.row", t->desc->doc);
	lull_str_addf(&value, "%llu", (unsigned long long)info->epoch_ns);
	lull_parquet_meta(p, "lull.epoch_ns", lull_str_text(&value));
	lull_str_clear(&value);
	lull_str_addf(&value, "%llu", (unsigned long long)info->epoch_utc_ns);
	lull_parquet_meta(p, "lull.epoch_utc_ns", lull_str_text(&value));
	lull_str_release(&value);
}

static int write_table(struct lull_reader *r, const struct lull_table_desc *desc,
		       struct lull_span window, FILE *to, struct lull_err *err)
{
	struct table *t = lull_alloc(1, sizeof(*t));
	struct lull_parquet *p;
	int rc;

	t->reader = r;
	t->desc = desc;
	t->gathered = lull_alloc(LULL_PARQUET_PAGE_ROWS, sizeof(u64));
	plan(t);
	p = lull_parquet_new(to, t->columns, t->n_columns);
	put_meta(p, t);
	if (desc->kind == LULL_KIND_DIM)
		put_dims(t, p);
	else
		put_facts(t, p, window);
	rc = lull_parquet_finish(p, err);
	release(t);
	return rc;
}

static int write_folder(struct lull_reader *r, const struct lull_export_options *options,
			const char *path, struct lull_err *err)
{
	const struct lull_schema *schema = lull_reader_schema(r);
	int rc = LULL_OK;

	if (mkdir(path, 0777))
		return lull_fail_errno(err, "creating the folder");
	for (size_t i = 0; i < schema->n && !rc; i++) {
		const struct lull_table_desc *table = &schema->tables[i];
		FILE *to;

		if (!lull_export_holds(r, table, options))
			continue;
		rc = lull_export_member(path, table->name, ".parquet", &to, err);
		if (rc)
			return rc;
		rc = write_table(r, table, lull_export_window(options), to, err);
		if (fclose(to) && !rc)
			rc = lull_fail_errno(err, "writing the export");
	}
	return rc;
}

const struct lull_export lull_export_parquet = {
	.name = "parquet",
	.suffix = ".parquet",
	.summary = "a folder of Parquet files, one per table",
	.write_path = write_folder,
	.member_suffix = ".parquet",
};
