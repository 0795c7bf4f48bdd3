/*
 * lull: a report again, with a part of the time or of the tables of another one.
 *
 * For a report to keep or to send: times, names and numbers are those of the whole report, so every
 * command reads it. Of threads, stacks, names and other things that events refer to, only those are
 * kept that the kept events need; processes, devices and facts about the machine are all kept.
 * Tables and columns of a later version of lull are left out.
 */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "trace/writer.h"

#define MAX_TABLES 64

/* A dimension: which of its rows are needed, and the ids that they get. */
struct dim {
	const struct lull_table_desc *table;
	u32 *ids; /* by old id; 0: not needed */
	u32 n;
	bool is_new; /* rows were marked whose own references were not followed yet */
};

struct cut {
	struct lull_reader *reader;
	struct lull_writer *writer;
	const struct lull_export_options *options;
	struct dim dims[MAX_TABLES];
	u32 n_dims;
	struct dim *of[MAX_TABLES][LULL_MAX_COLS]; /* by table and column: what it refers to */
	u32 *strings;				   /* new ids by old ones; 0: not there yet */
	u32 n_strings;
	u8 *row;
	lull_export_row_fn *fn; /* told the rows that are kept */
	u64 n_seen;		/* rows of the table at hand, of samples alone */
};

static size_t index_of(const struct lull_table_desc *t)
{
	return (size_t)(t - lull_tables);
}

static struct dim *find_dim(struct cut *c, const char *type)
{
	for (u32 i = 0; i < c->n_dims; i++)
		if (!strcmp(c->dims[i].table->name, type))
			return &c->dims[i];
	return NULL;
}

/* ---- which rows are needed ---- */

static void mark(struct dim *d, u64 id)
{
	if (!id || id > d->n || d->ids[id])
		return;
	d->ids[id] = 1;
	d->is_new = true;
}

static void mark_row(void *ctx, struct lull_reader *r, const struct lull_export_row *row)
{
	struct cut *c = ctx;

	(void)r;
	for (unsigned i = 0; i < row->table->n_cols; i++) {
		struct dim *d = c->of[index_of(row->table)][i];

		if (d)
			mark(d, lull_load(row->values[i], row->table->cols[i].size_bytes));
	}
}

/* Follow the references of marked rows. A row refers to smaller ids of its own table. */
static void mark_further(struct cut *c, struct dim *d)
{
	size_t n;
	const u8 *rows = lull_reader_dim(c->reader, (enum lull_table)d->table->id, &n);

	d->is_new = false;
	for (u32 id = d->n; id; id--) {
		for (unsigned i = 0; d->ids[id] && i < d->table->n_cols; i++) {
			const struct lull_col_desc *col = &d->table->cols[i];
			struct dim *other = c->of[index_of(d->table)][i];
			const u8 *at = rows + (size_t)(id - 1) * d->table->row_bytes + col->row_off;

			if (!other)
				continue;
			mark(other, lull_load(at, col->size_bytes));
			if (other == d)
				d->is_new = false;
		}
	}
}

/* What nothing refers to is about the whole recording; processes and devices are few. */
static bool is_always_kept(const struct cut *c, const struct dim *d)
{
	if (d->table->id == LULL_TABLE_process || d->table->id == LULL_TABLE_device)
		return true;
	for (size_t t = 0; lull_tables[t].name; t++)
		for (unsigned i = 0; i < lull_tables[t].n_cols; i++)
			if (c->of[t][i] == d)
				return false;
	return true;
}

/* Whether a row of meta is an environment variable that is not wanted. */
static bool is_discarded(const struct cut *c, const struct dim *d, u32 id)
{
	size_t n;
	const struct lull_meta_row *rows;

	if (!c->options->is_env_discarded || d->table->id != LULL_TABLE_meta)
		return false;
	rows = lull_reader_dim(c->reader, LULL_TABLE_meta, &n);
	return !strncmp(lull_reader_string(c->reader, rows[id - 1].key, NULL), "environment.", 12);
}

static void keep_all_of(struct cut *c, struct dim *d)
{
	for (u32 id = 1; id <= d->n; id++) {
		if (!is_discarded(c, d, id))
			mark(d, id);
	}
}

static void mark_all(struct cut *c)
{
	bool is_new = true;

	for (u32 i = 0; i < c->n_dims; i++) {
		if (is_always_kept(c, &c->dims[i]))
			keep_all_of(c, &c->dims[i]);
	}
	while (is_new) {
		is_new = false;
		for (u32 i = 0; i < c->n_dims; i++) {
			if (!c->dims[i].is_new)
				continue;
			is_new = true;
			mark_further(c, &c->dims[i]);
		}
	}
}

/* ---- writing ---- */

static u32 new_string(struct cut *c, u32 id)
{
	size_t len;
	const char *text;

	if (!id || id > c->n_strings)
		return 0;
	if (!c->strings[id]) {
		text = lull_reader_string(c->reader, id, &len);
		c->strings[id] = lull_writer_string(c->writer, text, len);
	}
	return c->strings[id];
}

/* The row with the ids of the new file, to c->row. */
static void renumber(struct cut *c, const struct lull_table_desc *table, const u8 *const *values)
{
	memset(c->row, 0, table->row_bytes);
	for (unsigned i = 0; i < table->n_cols; i++) {
		const struct lull_col_desc *col = &table->cols[i];
		const struct dim *d = c->of[index_of(table)][i];
		u8 *at = c->row + col->row_off;
		u32 id;

		memcpy(at, values[i], col->size_bytes);
		if (!d && !lull_export_is_text(col))
			continue;
		memcpy(&id, at, sizeof(id));
		id = !d ? new_string(c, id) : id <= d->n ? d->ids[id] : 0;
		memcpy(at, &id, sizeof(id));
	}
}

static void write_dim(struct cut *c, const struct dim *d)
{
	size_t n;
	const u8 *rows = lull_reader_dim(c->reader, (enum lull_table)d->table->id, &n);
	const u8 *values[LULL_MAX_COLS];

	for (u32 id = 1; id <= d->n; id++) {
		if (!d->ids[id])
			continue;
		for (unsigned i = 0; i < d->table->n_cols; i++)
			values[i] = rows + (size_t)(id - 1) * d->table->row_bytes +
				    d->table->cols[i].row_off;
		renumber(c, d->table, values);
		lull_writer_add_dim(c->writer, (enum lull_table)d->table->id, c->row);
	}
}

/* A sample that stays stands for the time of those that were left out, too. */
static void stand_for_more(u8 *row, u64 n)
{
	u64 weight_ns;

	memcpy(&weight_ns, row + offsetof(struct lull_sample_row, weight_ns), sizeof(weight_ns));
	weight_ns *= n;
	memcpy(row + offsetof(struct lull_sample_row, weight_ns), &weight_ns, sizeof(weight_ns));
}

static void write_fact(void *ctx, struct lull_reader *r, const struct lull_export_row *row)
{
	struct cut *c = ctx;

	(void)r;
	renumber(c, row->table, row->values);
	if (row->table->id == LULL_TABLE_sample && c->options->thin > 1)
		stand_for_more(c->row, c->options->thin);
	lull_writer_add(c->writer, (enum lull_table)row->table->id, c->row);
}

static bool is_sample(const struct lull_table_desc *t)
{
	return t->id == LULL_TABLE_sample || t->id == LULL_TABLE_pysample;
}

/* A lull_export_row_fn: every N-th sample stays. */
static void thin(void *ctx, struct lull_reader *r, const struct lull_export_row *row)
{
	struct cut *c = ctx;

	if (c->n_seen++ % c->options->thin == 0)
		c->fn(c, r, row);
}

static void each_fact(struct cut *c, lull_export_row_fn *fn)
{
	c->fn = fn;
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		bool is_thin = is_sample(t) && c->options->thin > 1;

		c->n_seen = 0;
		if (t->kind == LULL_KIND_FACT && lull_export_wants(c->options, t->name))
			lull_export_rows(c->reader, t, lull_export_window(c->options),
					 is_thin ? thin : fn, c);
	}
}

static void number_dims(struct cut *c)
{
	for (u32 i = 0; i < c->n_dims; i++) {
		u32 next = 1;

		for (u32 id = 1; id <= c->dims[i].n; id++)
			c->dims[i].ids[id] = c->dims[i].ids[id] ? next++ : 0;
	}
}

/* ---- the whole ---- */

static void init(struct cut *c)
{
	u32 most_bytes = 0;

	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct dim *d = &c->dims[c->n_dims];
		size_t n;

		most_bytes = t->row_bytes > most_bytes ? t->row_bytes : most_bytes;
		if (t->kind != LULL_KIND_DIM)
			continue;
		lull_reader_dim(c->reader, (enum lull_table)t->id, &n);
		*d = (struct dim){ .table = t, .n = (u32)n };
		d->ids = lull_alloc(n + 1, sizeof(*d->ids));
		c->n_dims++;
	}
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		for (unsigned i = 0; i < t->n_cols; i++)
			c->of[index_of(t)][i] = find_dim(c, t->cols[i].type);
	c->n_strings = lull_reader_n_strings(c->reader);
	c->strings = lull_alloc((size_t)c->n_strings + 1, sizeof(*c->strings));
	c->row = lull_alloc(1, most_bytes);
}

static void release(struct cut *c)
{
	for (u32 i = 0; i < c->n_dims; i++)
		free(c->dims[i].ids);
	free(c->strings);
	free(c->row);
	free(c);
}

static int write_path(struct lull_reader *r, const struct lull_export_options *options,
		      const char *path, struct lull_err *err)
{
	struct cut *c = lull_alloc(1, sizeof(*c));
	int rc;

	c->reader = r;
	c->options = options;
	rc = lull_writer_open(&c->writer, path, lull_reader_info(r), err);
	if (!rc) {
		init(c);
		each_fact(c, mark_row);
		mark_all(c);
		number_dims(c);
		for (u32 i = 0; i < c->n_dims; i++)
			write_dim(c, &c->dims[i]);
		each_fact(c, write_fact);
		rc = lull_writer_error(c->writer, err);
		if (rc)
			lull_writer_discard(c->writer);
		else
			rc = lull_writer_seal(c->writer, err);
	}
	release(c);
	return rc;
}

const struct lull_export lull_export_lull = {
	.name = "lull",
	.suffix = "-part.lull",
	.summary = "a report with a part of the time or the tables",
	.write_path = write_path,
};
