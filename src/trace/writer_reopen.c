/* A writer that continues where another one stopped. */
#include "trace/writer_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "trace/reader.h"

/* ---- taking over what is in a file ---- */

static void load_names(struct lull_names *names, struct lull_reader *r, u32 n)
{
	for (u32 id = 1; id <= n; id++) {
		size_t len;
		const char *text = lull_reader_string(r, id, &len);

		*lull_map_add(&names->ids, lull_hash(text, len), NULL) = id;
		names->n_bytes += len;
	}
	names->n = n;
}

static void load_dims(struct lull_dims *d, struct lull_reader *r)
{
	size_t n;
	const void *rows = lull_reader_dim_rows(r, d->desc, &n);

	if (!n)
		return;
	d->rows = (struct lull_rows){ .n = (u32)n, .cap = (u32)n };
	d->rows.at = lull_alloc(n, d->desc->row_bytes);
	memcpy(d->rows.at, rows, n * d->desc->row_bytes);
	d->is_dirty = lull_alloc(n, 1);
	d->first_dirty = (u32)n;
}

struct lull_writer *lull_writer_adopt(const struct lull_part *part, struct lull_reader *r)
{
	struct lull_writer *w = lull_writer_new();
	const struct lull_entry *e = part->entries.at;
	u64 n_names = 0;

	w->part = *part;
	for (size_t i = 0; i < part->entries.n; i++) {
		u64 end = (u64)e[i].first_id + e[i].n_rows;

		if (e[i].kind == LULL_BLOCK_ROWS)
			w->stats.n_rows += e[i].n_rows;
		else if (e[i].kind == LULL_BLOCK_STRINGS && end > n_names + 1)
			n_names = end - 1;
	}
	/* No writer gives more ids than this; a file that claims it is not followed. */
	load_names(&w->names, r, n_names < LULL_MAX_NAMES ? (u32)n_names : LULL_MAX_NAMES);
	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->kind == LULL_KIND_DIM)
			load_dims(&w->dims[t->id], r);
	return w;
}

/* ---- where to continue ---- */

/*
 * End of the last whole block of checkpoints; without one, the first block of facts, or the end of
 * all blocks.
 */
static u64 find_cut(const struct lull_reader *r)
{
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(r, &n);
	u64 checkpoint = 0, facts = UINT64_MAX, end = LULL_HEADER_BYTES;

	for (size_t i = 0; i < n; i++) {
		u64 block_end = e[i].off + e[i].size_bytes;

		if (lull_reader_is_damaged(r, i))
			continue;
		if (e[i].kind == LULL_BLOCK_ROWS && e[i].off < facts)
			facts = e[i].off;
		if (e[i].table_id == LULL_TABLE_checkpoint && block_end > checkpoint)
			checkpoint = block_end;
		end = block_end > end ? block_end : end;
	}
	if (checkpoint)
		return checkpoint;
	return facts < end ? facts : end;
}

/* The whole blocks that end at or before the cut. */
static void keep_blocks(const struct lull_reader *r, u64 cut, struct lull_vec *kept)
{
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(r, &n);

	for (size_t i = 0; i < n; i++)
		if (!lull_reader_is_damaged(r, i) && e[i].off + e[i].size_bytes <= cut)
			lull_vec_add(kept, &e[i], 1);
}

/* Cut the file after its last checkpoint and open it for appending. */
static int cut_part(struct lull_part *part, const char *part_path, const char *path,
		    struct lull_err *err)
{
	struct lull_reader *r;
	struct lull_vec kept;
	u64 cut;
	int rc = lull_reader_open(&r, part_path, err);

	if (rc)
		return rc;
	lull_reader_verify(r);
	cut = find_cut(r);
	lull_vec_init(&kept, sizeof(struct lull_entry));
	keep_blocks(r, cut, &kept);
	lull_reader_close(r);
	rc = lull_part_resume(part, part_path, path, kept.at, kept.n, cut, err);
	lull_vec_release(&kept);
	return rc;
}

int lull_writer_reopen(struct lull_writer **out, const char *path, struct lull_err *err)
{
	struct lull_str part_path = LULL_STR_INIT;
	struct lull_reader *r;
	struct lull_part part;
	int rc;

	lull_str_addf(&part_path, "%s.part", path);
	rc = cut_part(&part, lull_str_text(&part_path), path, err);
	if (!rc) {
		/* Only now: what was after the cut must not be loaded. */
		rc = lull_reader_open(&r, lull_str_text(&part_path), err);
		if (rc) {
			lull_part_close(&part);
		} else {
			*out = lull_writer_adopt(&part, r);
			lull_reader_close(r);
		}
	}
	lull_str_release(&part_path);
	return rc;
}
