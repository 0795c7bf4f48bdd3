#include "trace/encode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/crc.h"
#include "trace/row_sort.h"

/* Rows are cut into columns this many at a time, so that they stay in the L1 cache for all columns.
 */
#define CUT_ROWS 256u

struct lull_encoder {
	struct lull_codec *codec;
	struct lull_sort_key *keys, *spare;
	u32 *row_ix;   /* which row comes where in the block */
	u32 *run_lane; /* lane runs */
	u32 *run_len;
	u8 *values; /* columns cut out of the rows, one after the other */
	size_t values_cap;
	u8 *out; /* the block */
	size_t out_cap;
};

/* A block being put together. */
struct draft {
	struct lull_encoder *e;
	struct lull_block_head head;
	struct lull_block_col cols[LULL_MAX_COLS];
	u32 end; /* of what has been written */
};

/* Where the special columns of a table are; -1 if it has none. */
struct roles {
	int start, dur, depth, lane;
};

struct lull_encoder *lull_encoder_new(void)
{
	struct lull_encoder *e = lull_alloc(1, sizeof(*e));

	e->codec = lull_codec_new();
	e->keys = lull_alloc(LULL_MAX_ROWS, sizeof(*e->keys));
	e->spare = lull_alloc(LULL_MAX_ROWS, sizeof(*e->spare));
	e->row_ix = lull_alloc(LULL_MAX_ROWS, sizeof(*e->row_ix));
	e->run_lane = lull_alloc(LULL_MAX_ROWS, sizeof(*e->run_lane));
	e->run_len = lull_alloc(LULL_MAX_ROWS, sizeof(*e->run_len));
	return e;
}

void lull_encoder_free(struct lull_encoder *e)
{
	if (!e)
		return;
	lull_codec_free(e->codec);
	free(e->keys);
	free(e->spare);
	free(e->row_ix);
	free(e->run_lane);
	free(e->run_len);
	free(e->values);
	free(e->out);
	free(e);
}

/* ---- putting a block together ---- */

static void reserve(u8 **at, size_t *cap, size_t need)
{
	if (need <= *cap)
		return;
	*at = lull_realloc(*at, need, 1);
	*cap = need;
}

/* Begin a block of at most max_cols columns, each of at most col_bytes. */
static void draft_begin(struct draft *d, struct lull_encoder *e, unsigned max_cols,
			size_t col_bytes)
{
	d->e = e;
	d->head = (struct lull_block_head){ .head_bytes = (u16)(LULL_BLOCK_HEAD_BYTES +
								max_cols * LULL_BLOCK_COL_BYTES) };
	d->end = d->head.head_bytes;
	reserve(&e->out, &e->out_cap, d->end + max_cols * col_bytes + LULL_BLOCK_ALIGN);
}

/* Finish a column whose `len` bytes have been written after the others. */
static void draft_add(struct draft *d, struct lull_block_col *col, size_t len)
{
	col->off = d->end;
	col->size_bytes = (u32)len;
	col->crc = lull_crc32c(0, d->e->out + d->end, len);
	d->cols[d->head.n_cols++] = *col;
	d->end += (u32)len;
}

static void draft_add_values(struct draft *d, u16 id, u8 type, const struct lull_col_values *v)
{
	struct lull_block_col col = { .id = id, .type = type, .has_zone = !v->is_signed };

	draft_add(d, &col, lull_codec_encode(d->e->codec, v, &col.form, d->e->out + d->end));
}

static void draft_add_text(struct draft *d, u16 id, const u8 *text, size_t n)
{
	struct lull_block_col col = { .id = id, .type = LULL_TYPE_TEXT, .form.quantum = 1 };

	draft_add(d, &col, lull_codec_pack(d->e->codec, text, n, d->e->out + d->end));
}

static struct lull_encoded draft_end(struct draft *d)
{
	struct lull_encoder *e = d->e;
	size_t total = lull_block_round_up(d->end);

	/* draft_begin() was told the exact number of columns, so the head fits in front of them. */
	assert(d->head.head_bytes == LULL_BLOCK_HEAD_BYTES + d->head.n_cols * LULL_BLOCK_COL_BYTES);
	memset(e->out + d->end, 0, total - d->end);
	d->head.size_bytes = (u32)total;
	lull_block_put_head(e->out, &d->head, d->cols);
	return (struct lull_encoded){ .at = e->out, .head = d->head };
}

/* ---- rows to columns ---- */

#define DEFINE_CUT(T)                                                            \
	static void cut_##T(const u8 *const *rows, size_t n, size_t off, T *out) \
	{                                                                        \
		for (size_t i = 0; i < n; i++)                                   \
			memcpy(&out[i], rows[i] + off, sizeof(T));               \
	}
DEFINE_CUT(u8)
DEFINE_CUT(u16)
DEFINE_CUT(u32)
DEFINE_CUT(u64)

/* One column of up to CUT_ROWS rows, to row `first` of the column at `column`. */
static void cut_column(const u8 *const *rows, size_t n, const struct lull_col_desc *col, u8 *column,
		       size_t first)
{
	switch (col->size_bytes) {
	case 1:
		cut_u8(rows, n, col->row_off, column + first);
		return;
	case 2:
		cut_u16(rows, n, col->row_off, (u16 *)(void *)column + first);
		return;
	case 4:
		cut_u32(rows, n, col->row_off, (u32 *)(void *)column + first);
		return;
	default:
		cut_u64(rows, n, col->row_off, (u64 *)(void *)column + first);
	}
}

/* Cut all columns out of the rows named by e->row_ix; column c begins at at[c]. */
static void cut_columns(struct lull_encoder *e, const struct lull_table_desc *table, const u8 *rows,
			size_t n, u8 **at)
{
	const u8 *ptrs[CUT_ROWS];
	size_t off = 0;

	reserve(&e->values, &e->values_cap, (size_t)table->n_cols * (n + 1) * 8);
	for (unsigned c = 0; c < table->n_cols; c++) {
		at[c] = e->values + off;
		off += (n * table->cols[c].size_bytes + 7) & ~(size_t)7;
	}
	for (size_t first = 0; first < n; first += CUT_ROWS) {
		size_t part = n - first < CUT_ROWS ? n - first : CUT_ROWS;

		for (size_t i = 0; i < part; i++)
			ptrs[i] = rows + (size_t)e->row_ix[first + i] * table->row_bytes;
		for (unsigned c = 0; c < table->n_cols; c++)
			cut_column(ptrs, part, &table->cols[c], at[c], first);
	}
}

static bool is_time(const struct lull_col_desc *col)
{
	size_t len = strlen(col->name);

	return len > 3 && strcmp(col->name + len - 3, "_ns") == 0;
}

static struct lull_col_values values_of(const struct lull_col_desc *col, const void *at, size_t n)
{
	return (struct lull_col_values){
		.at = at,
		.n = n,
		.size_bytes = col->size_bytes,
		.predictor = col->encoding,
		.is_signed = col->is_signed,
		.is_time = is_time(col),
	};
}

/* ---- facts ---- */

static struct roles find_roles(const struct lull_table_desc *table)
{
	return (struct roles){
		.start = lull_table_column(table, "start_ns"),
		.dur = lull_table_column(table, "dur_ns"),
		.depth = lull_table_column(table, "depth"),
		.lane = lull_table_column(table, "lane"),
	};
}

/* Fill the sort keys and the bounds of the head. */
static void take_keys(struct draft *d, const struct lull_table_desc *table,
		      const struct roles *roles, const u8 *rows, size_t n)
{
	size_t start_off = table->cols[roles->start].row_off;
	size_t dur_off = roles->dur < 0 ? 0 : table->cols[roles->dur].row_off;
	size_t lane_off = roles->lane < 0 ? 0 : table->cols[roles->lane].row_off;
	u64 min_start = UINT64_MAX, max_start = 0, max_end = 0, lanes = 0;
	struct lull_sort_key *keys = d->e->keys;

	for (size_t i = 0; i < n; i++, rows += table->row_bytes) {
		u64 start_ns, end_ns, dur_ns = 0;
		u32 lane = 0;

		memcpy(&start_ns, rows + start_off, sizeof(start_ns));
		if (roles->dur >= 0)
			memcpy(&dur_ns, rows + dur_off, sizeof(dur_ns));
		if (roles->lane >= 0)
			memcpy(&lane, rows + lane_off, sizeof(lane));
		keys[i] = (struct lull_sort_key){ start_ns, dur_ns, lane, (u32)i };
		end_ns = start_ns + dur_ns;
		min_start = start_ns < min_start ? start_ns : min_start;
		max_start = start_ns > max_start ? start_ns : max_start;
		max_end = end_ns > max_end ? end_ns : max_end;
		lanes |= 1ULL << lane % 64;
	}
	d->head.min_start = min_start;
	d->head.max_start = max_start;
	d->head.max_end = max_end;
	d->head.lanes = lanes;
}

/* The rows of each lane together; e->row_ix says which row comes where. */
static size_t find_runs(struct lull_encoder *e, const struct lull_sort_key *keys, size_t n)
{
	size_t n_runs = 0, first = 0;

	for (size_t i = 0; i < n; i++) {
		e->row_ix[i] = keys[i].row;
		if (i + 1 < n && keys[i + 1].lane == keys[i].lane)
			continue;
		e->run_lane[n_runs] = keys[i].lane;
		e->run_len[n_runs++] = (u32)(i + 1 - first);
		first = i + 1;
	}
	return n_runs;
}

/* The lane column as runs: the lanes, and how many rows each has. */
static void add_runs(struct draft *d, const struct lull_col_desc *col, size_t n_runs)
{
	struct lull_col_values v = values_of(col, d->e->run_lane, n_runs);

	draft_add_values(d, col->id, LULL_TYPE_REF, &v);
	v.at = d->e->run_len;
	draft_add_values(d, (u16)(LULL_COL_RUNS + col->id), LULL_TYPE_U32, &v);
}

/* Store column c unless it is the lane, with what the prediction of a start looks at. */
static void add_column(struct draft *d, const struct lull_table_desc *table, unsigned c,
		       u8 *const *at, const struct roles *roles, size_t n)
{
	const struct lull_col_desc *col = &table->cols[c];
	struct lull_col_values v = values_of(col, at[c], n);

	if (roles->dur >= 0)
		v.by.dur_ns = (const u64 *)(const void *)at[roles->dur];
	if (roles->depth >= 0)
		v.by.depth = at[roles->depth];
	draft_add_values(d, col->id, lull_block_type(col), &v);
}

struct lull_encoded lull_encode_facts(struct lull_encoder *e, const struct lull_table_desc *table,
				      const void *rows, size_t n, u8 flags, u32 seq)
{
	struct roles roles = find_roles(table);
	unsigned n_cols = table->n_cols + (roles.lane >= 0);
	u8 *at[LULL_MAX_COLS];
	struct draft d;
	size_t n_runs;

	assert(n >= 1 && n <= LULL_MAX_ROWS && roles.start >= 0);
	draft_begin(&d, e, n_cols, lull_codec_bound(n));
	d.head.kind = LULL_BLOCK_ROWS;
	d.head.flags = flags;
	d.head.table_id = table->id;
	d.head.n_rows = (u32)n;
	d.head.seq = seq;
	take_keys(&d, table, &roles, rows, n);
	n_runs = find_runs(e, lull_sort_keys(e->keys, e->spare, n), n);
	cut_columns(e, table, rows, n, at);
	if (roles.lane >= 0) {
		d.head.extra = (u32)n_runs;
		add_runs(&d, &table->cols[roles.lane], n_runs);
	}
	/* The start is predicted from duration and depth: they come first, for readers going front
	 * to back. */
	if (roles.dur >= 0)
		add_column(&d, table, (unsigned)roles.dur, at, &roles, n);
	if (roles.depth >= 0)
		add_column(&d, table, (unsigned)roles.depth, at, &roles, n);
	for (int c = 0; c < table->n_cols; c++)
		if (c != roles.lane && c != roles.dur && c != roles.depth)
			add_column(&d, table, (unsigned)c, at, &roles, n);
	return draft_end(&d);
}

/* ---- dimensions and texts ---- */

struct lull_encoded lull_encode_dims(struct lull_encoder *e, const struct lull_table_desc *table,
				     const void *rows, const u32 *ids, size_t n, u32 seq)
{
	struct lull_col_values id_values = {
		.at = ids, .n = n, .size_bytes = sizeof(*ids), .predictor = LULL_ENC_DELTA
	};
	const struct roles none = { -1, -1, -1, -1 };
	u8 *at[LULL_MAX_COLS];
	struct draft d;

	assert(n >= 1 && n <= LULL_MAX_ROWS);
	draft_begin(&d, e, table->n_cols + 1u, lull_codec_bound(n));
	d.head.kind = LULL_BLOCK_KEYED;
	d.head.table_id = table->id;
	d.head.n_rows = (u32)n;
	d.head.seq = seq;
	d.head.min_start = d.head.extra = ids[0];
	d.head.max_end = d.head.max_start = ids[n - 1];
	for (size_t i = 0; i < n; i++)
		e->row_ix[i] = ids[i] - 1;
	cut_columns(e, table, rows, n, at);
	draft_add_values(&d, LULL_COL_ID, LULL_TYPE_U32, &id_values);
	for (unsigned c = 0; c < table->n_cols; c++)
		add_column(&d, table, c, at, &none, n);
	return draft_end(&d);
}

struct lull_encoded lull_encode_texts(struct lull_encoder *e, enum lull_block_kind kind,
				      const struct lull_texts *texts, u32 seq)
{
	struct lull_col_values lens = { .at = texts->lens,
					.n = texts->n,
					.size_bytes = sizeof(*texts->lens) };
	size_t n_bytes = 0;
	struct draft d;

	assert(texts->n >= 1 && texts->n <= LULL_MAX_ROWS);
	for (size_t i = 0; i < texts->n; i++)
		n_bytes += texts->lens[i];
	assert(n_bytes <= LULL_MAX_TEXT_BYTES);
	draft_begin(&d, e, 2, lull_codec_bound(texts->n) + n_bytes + 4);
	d.head.kind = (u8)kind;
	d.head.n_rows = (u32)texts->n;
	d.head.seq = seq;
	d.head.extra = texts->first_id;
	draft_add_values(&d, LULL_COL_LENGTHS, LULL_TYPE_U32, &lens);
	draft_add_text(&d, LULL_COL_TEXT, texts->bytes, n_bytes);
	return draft_end(&d);
}
