#include "trace/reader.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/reader_int.h"

/* ---- opening ---- */

static int read_header(struct lull_reader *r, struct lull_err *err)
{
	const u8 *at = lull_input_view(&r->in, 0, LULL_HEADER_BYTES, 0);

	if (!at)
		return lull_fail(err, LULL_E_FORMAT, "%llu bytes are too short for a lull report",
				 (unsigned long long)r->in.size_bytes);
	return lull_file_get_header(at, &r->info, &r->format, err);
}

int lull_reader_open(struct lull_reader **out, const char *path, struct lull_err *err)
{
	struct lull_reader *r = lull_alloc(1, sizeof(*r));
	int rc;

	r->decoder = lull_decoder_new();
	lull_vec_init(&r->entries, sizeof(struct lull_entry));
	lull_vec_init(&r->dim_sizes, sizeof(struct lull_dim_size));
	lull_vec_init(&r->dims, sizeof(struct lull_dim_rows *));
	lull_vec_init(&r->strings, sizeof(struct lull_string_block));
	lull_schema_init(&r->schema);
	rc = lull_input_open(&r->in, path, err);
	if (!rc && (read_header(r, err) || lull_reader_find_blocks(r, err)))
		rc = lull_err_wrap(err, "%s", path);
	if (rc) {
		lull_reader_close(r);
		return rc;
	}
	lull_reader_index_dims(r);
	*out = r;
	return 0;
}

void lull_reader_close(struct lull_reader *r)
{
	if (!r)
		return;
	lull_reader_release_dims(r);
	lull_vec_release(&r->entries);
	lull_decoder_free(r->decoder);
	lull_input_release(&r->in);
	free(r->is_damaged);
	free(r);
}

/* ---- what is known without decoding ---- */

const struct lull_file_info *lull_reader_info(const struct lull_reader *r)
{
	return &r->info;
}

bool lull_reader_is_sealed(const struct lull_reader *r)
{
	return r->is_sealed;
}

u16 lull_reader_format(const struct lull_reader *r)
{
	return r->format;
}

u64 lull_reader_n_damaged(const struct lull_reader *r)
{
	return r->n_damaged;
}

u64 lull_reader_lost_bytes(const struct lull_reader *r)
{
	return r->lost_bytes;
}

u64 lull_reader_n_dangling(const struct lull_reader *r)
{
	return r->n_dangling;
}

const char *lull_reader_warning(const struct lull_reader *r)
{
	return r->warning[0] ? r->warning : NULL;
}

u64 lull_reader_size_bytes(const struct lull_reader *r)
{
	return r->in.size_bytes;
}

void lull_reader_warn(struct lull_reader *r, const struct lull_table_desc *t,
		      const struct lull_col_desc *col)
{
	if (!r->warning[0])
		snprintf(r->warning, sizeof(r->warning),
			 "column %s of table %s is stored in a way that lull %s does not know",
			 col->name, t->name, LULL_VERSION);
}

const struct lull_entry *lull_reader_blocks(const struct lull_reader *r, size_t *n)
{
	*n = r->entries.n;
	return r->entries.at;
}

bool lull_reader_is_damaged(const struct lull_reader *r, size_t block_ix)
{
	return r->is_damaged[block_ix];
}

/* Index of the first entry of this table, or of the first one after it. */
static size_t first_entry(const struct lull_reader *r, u16 table_id)
{
	const struct lull_entry *e = r->entries.at;
	size_t lo = 0, hi = r->entries.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (e[mid].table_id < table_id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

u32 lull_reader_most_rows(const struct lull_reader *r, u16 table_id)
{
	const struct lull_entry *e = r->entries.at;
	u32 most = 0;

	for (size_t i = first_entry(r, table_id); i < r->entries.n && e[i].table_id == table_id;
	     i++)
		most = e[i].n_rows > most ? e[i].n_rows : most;
	return most;
}

struct lull_table_stats lull_reader_stats(const struct lull_reader *r, u16 table_id)
{
	const struct lull_entry *e = r->entries.at;
	struct lull_table_stats s = { 0 };

	for (size_t i = first_entry(r, table_id); i < r->entries.n && e[i].table_id == table_id;
	     i++) {
		bool is_fact = e[i].kind == LULL_BLOCK_ROWS;

		s.n_rows += e[i].n_rows;
		s.size_bytes += e[i].size_bytes;
		s.n_blocks++;
		if (!is_fact)
			continue;
		s.first_ns = s.n_blocks == 1 || e[i].min_start < s.first_ns ? e[i].min_start
									    : s.first_ns;
		s.last_ns = e[i].max_end > s.last_ns ? e[i].max_end : s.last_ns;
	}
	return s;
}

/* ---- cursors ---- */

void lull_reader_watch(struct lull_reader *r, lull_reader_watcher *watcher, void *ctx)
{
	r->watcher = watcher;
	r->watcher_ctx = ctx;
}

static void tell(struct lull_cursor *c)
{
	const struct lull_reader *r = c->reader;

	if (!r->watcher)
		return;
	if (!c->n_rows)
		c->n_rows = lull_reader_stats(r, c->table->id).n_rows;
	r->watcher(r->watcher_ctx, c->table, c->n_passed, c->n_rows);
}

void lull_cursor_init_table(struct lull_cursor *c, struct lull_reader *r,
			    const struct lull_table_desc *table, u64 from_ns, u64 to_ns)
{
	*c = (struct lull_cursor){
		.reader = r, .table = table, .from_ns = from_ns, .to_ns = to_ns
	};
	c->next_ix = first_entry(r, table->id);
}

void lull_cursor_init(struct lull_cursor *c, struct lull_reader *r, enum lull_table table,
		      u64 from_ns, u64 to_ns)
{
	lull_cursor_init_table(c, r, lull_table_find((u16)table), from_ns, to_ns);
}

void lull_cursor_want(struct lull_cursor *c, const char *column)
{
	int ix = lull_table_column(c->table, column);

	assert(ix >= 0);
	if (!c->is_wanted)
		c->is_wanted = lull_alloc(c->table->n_cols, sizeof(*c->is_wanted));
	c->is_wanted[ix] = true;
}

/* Index of the next entry that may hold rows of the window, or the number of entries. */
static size_t next_entry(struct lull_cursor *c)
{
	const struct lull_entry *e = c->reader->entries.at;
	size_t n = c->reader->entries.n;

	for (; c->next_ix < n && e[c->next_ix].table_id == c->table->id; c->next_ix++) {
		const struct lull_entry *now = &e[c->next_ix];

		if (now->min_start >= c->to_ns && c->to_ns != UINT64_MAX)
			break;
		c->n_passed += now->n_rows;
		if (now->kind == LULL_BLOCK_ROWS && now->max_end >= c->from_ns)
			return c->next_ix++;
	}
	c->next_ix = n;
	return n;
}

/* Room for the columns of the largest block, taken at the first one. */
static void place_columns(struct lull_cursor *c, void **cols)
{
	size_t off = 0;

	/* A multiple of 8 rows keeps each column aligned to its values. */
	if (!c->max_rows)
		c->max_rows = (lull_reader_most_rows(c->reader, c->table->id) + 8) & ~7u;
	for (unsigned k = 0; k < c->table->n_cols; k++)
		off += (size_t)c->max_rows * c->table->cols[k].size_bytes;
	if (!c->buffer)
		c->buffer = lull_alloc(off, 1);
	off = 0;
	for (unsigned k = 0; k < c->table->n_cols; k++) {
		cols[k] = (u8 *)c->buffer + off;
		off += (size_t)c->max_rows * c->table->cols[k].size_bytes;
	}
}

/* Decode entry `ix`; the number of rows, 0 if they are absent. */
static size_t decode_entry(struct lull_cursor *c, size_t ix, void **cols)
{
	struct lull_reader *r = c->reader;
	struct lull_decode_job job = { .table = c->table, .cols = cols, .is_wanted = c->is_wanted };
	struct lull_block_view v;
	int rc;

	/* The whole block is absent, whichever column could not be read. */
	if (r->is_damaged[ix] || !lull_reader_open_block(r, ix, &v))
		return 0;
	rc = lull_decode_rows(r->decoder, &v, &job);
	if (job.unreadable)
		lull_reader_warn(r, c->table, job.unreadable);
	if (rc) {
		if (rc != LULL_E_UNSUPPORTED)
			lull_reader_mark_damaged(r, ix);
		return 0;
	}
	for (unsigned k = 0; k < c->table->n_cols; k++)
		if (!c->is_wanted || c->is_wanted[k])
			lull_reader_check_ids(r, &c->table->cols[k], cols[k], v.head.n_rows);
	return v.head.n_rows;
}

/* Where the columns are; NULL for those that were not decoded. */
static void give_columns(const struct lull_cursor *c, void **cols, void *out)
{
	for (unsigned k = 0; k < c->table->n_cols; k++)
		if (c->is_wanted && !c->is_wanted[k])
			cols[k] = NULL;
	memcpy(out, cols, c->table->n_cols * sizeof(*cols));
}

size_t lull_cursor_next(struct lull_cursor *c, void *out)
{
	void *cols[LULL_MAX_COLS];
	size_t ix, n = 0;

	if (!c->buffer)
		tell(c);
	place_columns(c, cols);
	while (n == 0 && (ix = next_entry(c)) < c->reader->entries.n)
		n = decode_entry(c, ix, cols);
	give_columns(c, cols, out);
	tell(c);
	return n;
}

size_t lull_cursor_read(struct lull_cursor *c, size_t block_ix, void *out)
{
	void *cols[LULL_MAX_COLS];
	size_t n;

	place_columns(c, cols);
	n = decode_entry(c, block_ix, cols);
	give_columns(c, cols, out);
	tell(c);
	/* A caller that reads blocks again is no longer on a walk from start to end. */
	c->n_passed = c->n_passed + n <= c->n_rows ? c->n_passed + n : c->n_rows;
	return n;
}

void lull_cursor_release(struct lull_cursor *c)
{
	free(c->buffer);
	free(c->is_wanted);
	c->buffer = NULL;
	c->is_wanted = NULL;
}
