#include "trace/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct lull_decoder {
	struct lull_codec *codec;
	size_t cap; /* of each of these */
	u32 *run_value;
	u32 *run_len;
};

struct lull_decoder *lull_decoder_new(void)
{
	struct lull_decoder *d = lull_alloc(1, sizeof(*d));

	d->codec = lull_codec_new();
	return d;
}

/* Make room for n runs or lengths. */
static void reserve(struct lull_decoder *d, size_t n)
{
	if (n <= d->cap)
		return;
	d->cap = n;
	d->run_value = lull_realloc(d->run_value, n, sizeof(*d->run_value));
	d->run_len = lull_realloc(d->run_len, n, sizeof(*d->run_len));
}

void lull_decoder_free(struct lull_decoder *d)
{
	if (!d)
		return;
	lull_codec_free(d->codec);
	free(d->run_value);
	free(d->run_len);
	free(d);
}

/* Decode one column that is in the block. */
static int decode_found(struct lull_decoder *d, const struct lull_block_view *v,
			const struct lull_block_col *col, const struct lull_col_target *to)
{
	if (!lull_block_col_is_whole(v, col))
		return LULL_E_FORMAT;
	return lull_codec_decode(d->codec, &col->form, v->at + col->off, col->size_bytes, to);
}

/* Decode a u32 column of the block that must be there, into `n` values. */
static int decode_u32(struct lull_decoder *d, const struct lull_block_view *v, u16 id, u32 *out,
		      size_t n)
{
	struct lull_col_target to = { .at = out, .n = n, .size_bytes = sizeof(*out) };
	struct lull_block_col col;

	if (lull_block_find(v, id, &col))
		return LULL_E_FORMAT;
	return decode_found(d, v, &col, &to);
}

/* A column stored as runs: each value as often as its run is long. */
static int decode_runs(struct lull_decoder *d, const struct lull_block_view *v, u16 id, u32 *out)
{
	size_t n_runs = v->head.extra, n_rows = v->head.n_rows, at = 0;
	int rc;

	if (n_runs > n_rows)
		return LULL_E_FORMAT;
	reserve(d, n_runs);
	rc = decode_u32(d, v, id, d->run_value, n_runs);
	if (!rc)
		rc = decode_u32(d, v, (u16)(LULL_COL_RUNS + id), d->run_len, n_runs);
	for (size_t r = 0; r < n_runs && !rc; r++) {
		if (d->run_len[r] > n_rows - at)
			return LULL_E_FORMAT;
		for (u32 k = 0; k < d->run_len[r]; k++)
			out[at++] = d->run_value[r];
	}
	return rc ? rc : at == n_rows ? 0 : LULL_E_FORMAT;
}

/* Decode column c of the table; zeros if the block has none, or one of a later version. */
static int decode_column(struct lull_decoder *d, const struct lull_block_view *v,
			 struct lull_decode_job *job, unsigned c, const struct lull_predict_by *by)
{
	const struct lull_col_desc *desc = &job->table->cols[c];
	struct lull_col_target to = {
		.at = job->cols[c], .n = v->head.n_rows, .size_bytes = desc->size_bytes, .by = *by
	};
	struct lull_block_col col;
	int rc = lull_block_find(v, desc->id, &col);

	if (rc == LULL_E_FORMAT)
		return rc;
	if (rc == 0 && col.type != lull_block_type(desc))
		rc = LULL_E_UNSUPPORTED;
	else if (rc == 0 && col.form.predictor == LULL_ENC_LANE && desc->size_bytes == 4)
		rc = decode_runs(d, v, desc->id, job->cols[c]);
	else if (rc == 0)
		rc = decode_found(d, v, &col, &to);
	if (rc == LULL_E_UNSUPPORTED || rc == LULL_E_NOT_FOUND)
		memset(job->cols[c], 0, to.n * to.size_bytes);
	if (rc == LULL_E_UNSUPPORTED)
		job->unreadable = desc;
	return rc;
}

/* Decode the column that the start is predicted from, if the block has it. */
static int decode_role(struct lull_decoder *d, const struct lull_block_view *v,
		       struct lull_decode_job *job, int c, const void **out)
{
	const struct lull_predict_by none = { 0 };
	int rc;

	if (c < 0)
		return 0;
	rc = decode_column(d, v, job, (unsigned)c, &none);
	if (rc == 0)
		*out = job->cols[c];
	return rc == LULL_E_FORMAT ? rc : 0;
}

/* No row may end after UINT64_MAX: sums of start and duration are taken everywhere. */
static bool ends_do_not_wrap(const u64 *start_ns, const u64 *dur_ns, size_t n)
{
	bool is_wrapped = false;

	for (size_t i = 0; i < n; i++)
		is_wrapped |= dur_ns[i] > UINT64_MAX - start_ns[i];
	return !is_wrapped;
}

static int decode_facts(struct lull_decoder *d, const struct lull_block_view *v,
			struct lull_decode_job *job)
{
	int start = lull_table_column(job->table, "start_ns");
	int dur = lull_table_column(job->table, "dur_ns");
	int depth = lull_table_column(job->table, "depth");
	const void *dur_ns = NULL, *depths = NULL;
	struct lull_predict_by by;
	bool has_start = !job->is_wanted || (start >= 0 && job->is_wanted[start]);
	int rc = 0;

	/* The start is predicted from these two; without it they are columns like others. */
	if (has_start || (dur >= 0 && job->is_wanted[dur]))
		rc = decode_role(d, v, job, dur, &dur_ns);
	if (!rc && (has_start || (depth >= 0 && job->is_wanted[depth])))
		rc = decode_role(d, v, job, depth, &depths);
	by = (struct lull_predict_by){ dur_ns, depths };
	for (int c = 0; c < job->table->n_cols && !rc; c++) {
		if (c == dur || c == depth || (job->is_wanted && !job->is_wanted[c]))
			continue;
		rc = decode_column(d, v, job, (unsigned)c, &by);
		if (c != start && rc != LULL_E_FORMAT)
			rc = 0;
	}
	if (rc == LULL_E_NOT_FOUND)
		return LULL_E_FORMAT; /* facts without a time */
	if (!rc && start >= 0 && has_start && dur_ns &&
	    !ends_do_not_wrap(job->cols[start], dur_ns, v->head.n_rows))
		return LULL_E_FORMAT;
	return rc;
}

static int decode_keyed(struct lull_decoder *d, const struct lull_block_view *v,
			struct lull_decode_job *job)
{
	const struct lull_predict_by none = { 0 };
	int rc = decode_u32(d, v, LULL_COL_ID, job->ids, v->head.n_rows);

	for (unsigned c = 0; c < job->table->n_cols && !rc; c++) {
		rc = decode_column(d, v, job, c, &none);
		if (rc != LULL_E_FORMAT)
			rc = 0;
	}
	return rc;
}

int lull_decode_rows(struct lull_decoder *d, const struct lull_block_view *v,
		     struct lull_decode_job *job)
{
	job->unreadable = NULL;
	if (job->ids)
		return decode_keyed(d, v, job);
	return decode_facts(d, v, job);
}

/* Put a NUL after each text, moving from the last to the first: there is room for n more bytes. */
static void spread(struct lull_text_list *list, const u32 *lens, size_t n_bytes)
{
	size_t from = n_bytes, to = n_bytes + list->n;

	list->offs[list->n] = (u32)to;
	for (size_t i = list->n; i-- > 0;) {
		list->bytes[--to] = '\0';
		from -= lens[i];
		to -= lens[i];
		memmove(list->bytes + to, list->bytes + from, lens[i]);
		list->offs[i] = (u32)to;
	}
}

int lull_decode_texts(struct lull_decoder *d, const struct lull_block_view *v,
		      struct lull_text_list *list)
{
	struct lull_block_col col;
	size_t n = v->head.n_rows;
	u64 n_bytes = 0;
	int rc;

	*list = (struct lull_text_list){ 0 };
	reserve(d, n);
	rc = decode_u32(d, v, LULL_COL_LENGTHS, d->run_len, n);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		n_bytes += d->run_len[i];
	if (n_bytes > LULL_MAX_TEXT_BYTES || lull_block_find(v, LULL_COL_TEXT, &col) ||
	    !lull_block_col_is_whole(v, &col))
		return LULL_E_FORMAT;
	list->n = n;
	list->bytes = lull_alloc(n_bytes + n + 1, 1);
	list->offs = lull_alloc(n + 1, sizeof(*list->offs));
	rc = lull_codec_unpack(d->codec, v->at + col.off, col.size_bytes, (u8 *)list->bytes,
			       n_bytes);
	if (rc)
		lull_text_list_release(list);
	else
		spread(list, d->run_len, n_bytes);
	return rc;
}

void lull_text_list_release(struct lull_text_list *list)
{
	free(list->bytes);
	free(list->offs);
	*list = (struct lull_text_list){ 0 };
}
