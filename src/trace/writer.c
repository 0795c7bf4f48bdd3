#include "trace/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "trace/schema.h"
#include "trace/writer_int.h"

#define MAX_TEXT_BYTES (1u << 20)
#define MAX_DIM_ROWS   (16u << 20)
#define FIRST_ROWS     1024u /* room a table begins with */

#define AS_CHECK(id, name, kind, cols, doc) \
	_Static_assert((id) < LULL_N_TABLE_IDS, "make LULL_N_TABLE_IDS larger");
LULL_TABLES(AS_CHECK)

/* ---- making and freeing ---- */

struct lull_writer *lull_writer_new(void)
{
	struct lull_writer *w = lull_alloc(1, sizeof(*w));

	w->part.fd = -1;
	w->encoder = lull_encoder_new();
	w->ids = lull_alloc(LULL_MAX_ROWS, sizeof(*w->ids));
	lull_map_init(&w->names.ids);
	lull_vec_init(&w->names.lens, sizeof(u32));
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		int dur = lull_table_column(t, "dur_ns");

		if (t->kind == LULL_KIND_DIM) {
			w->dims[t->id].desc = t;
			continue;
		}
		w->facts[t->id].desc = t;
		w->facts[t->id].dur_off = dur < 0 ? 0 : t->cols[dur].row_off;
	}
	return w;
}

void lull_writer_free(struct lull_writer *w)
{
	for (size_t t = 0; t < LULL_N_TABLE_IDS; t++) {
		free(w->facts[t].flat.at);
		free(w->facts[t].tall.at);
		free(w->dims[t].rows.at);
		free(w->dims[t].is_dirty);
	}
	lull_map_release(&w->names.ids);
	lull_vec_release(&w->names.lens);
	lull_str_release(&w->names.bytes);
	lull_encoder_free(w->encoder);
	free(w->ids);
	free(w);
}

/* ---- writing blocks ---- */

/* Remember the failure; rows are still accepted. */
static int note(struct lull_writer *w, int rc, const struct lull_err *err)
{
	if (rc)
		w->error = *err;
	return rc;
}

static int append(struct lull_writer *w, const struct lull_encoded *block, struct lull_err *err)
{
	return note(w, lull_part_append(&w->part, block->at, &block->head, err), err);
}

static int write_schema(struct lull_writer *w, struct lull_err *err)
{
	struct lull_str bytes = LULL_STR_INIT;
	struct lull_texts texts = { 0 };
	struct lull_encoded block;
	struct lull_vec lens;
	int rc;

	lull_vec_init(&lens, sizeof(u32));
	lull_schema_lines(&bytes, &lens);
	texts.lens = lens.at;
	texts.n = lens.n;
	texts.bytes = (const u8 *)lull_str_text(&bytes);
	block = lull_encode_texts(w->encoder, LULL_BLOCK_SCHEMA, &texts, w->part.next_seq);
	rc = append(w, &block, err);
	lull_vec_release(&lens);
	lull_str_release(&bytes);
	return rc;
}

/* How many of the waiting texts fit into one block, and their bytes. */
static size_t texts_for_one_block(const struct lull_names *names, size_t from, size_t *n_bytes)
{
	const u32 *lens = names->lens.at;
	size_t n = 0;

	*n_bytes = 0;
	while (from + n < names->lens.n && n < LULL_MAX_ROWS &&
	       *n_bytes + lens[from + n] <= LULL_MAX_TEXT_BYTES)
		*n_bytes += lens[from + n++];
	return n;
}

/* Forget the first `n` waiting texts, which take n_bytes: they are in the file. */
static void drop_texts(struct lull_names *names, size_t n, size_t n_bytes)
{
	u32 *lens = names->lens.at;

	memmove(lens, lens + n, (names->lens.n - n) * sizeof(*lens));
	names->lens.n -= n;
	memmove(names->bytes.at, names->bytes.at + n_bytes, names->bytes.len - n_bytes);
	names->bytes.len -= n_bytes;
}

static int write_names(struct lull_writer *w, struct lull_err *err)
{
	struct lull_names *names = &w->names;
	size_t n_done = 0, bytes_done = 0;
	int rc = 0;

	while (!rc && n_done < names->lens.n) {
		size_t n_bytes, n = texts_for_one_block(names, n_done, &n_bytes);
		struct lull_texts texts = {
			.lens = (const u32 *)names->lens.at + n_done,
			.bytes = (const u8 *)names->bytes.at + bytes_done,
			.n = n,
			.first_id = names->n - (u32)(names->lens.n - n_done) + 1,
		};
		struct lull_encoded block =
			lull_encode_texts(w->encoder, LULL_BLOCK_STRINGS, &texts, w->part.next_seq);

		rc = append(w, &block, err);
		if (!rc) {
			n_done += n;
			bytes_done += n_bytes;
		}
	}
	if (n_done)
		drop_texts(names, n_done, bytes_done);
	return rc;
}

/* Collect the next ids of rows to write, from row index *from on. */
static size_t collect_dirty(const struct lull_dims *d, u32 *from, u32 *ids)
{
	size_t n = 0;

	for (; *from < d->rows.n && n < LULL_MAX_ROWS; (*from)++)
		if (d->is_dirty[*from])
			ids[n++] = *from + 1;
	return n;
}

static int write_dims(struct lull_writer *w, struct lull_dims *d, struct lull_err *err)
{
	while (d->n_dirty) {
		u32 next = d->first_dirty;
		size_t n = collect_dirty(d, &next, w->ids);
		struct lull_encoded block = lull_encode_dims(w->encoder, d->desc, d->rows.at,
							     w->ids, n, w->part.next_seq);
		int rc = append(w, &block, err);

		if (rc)
			return rc;
		for (size_t i = 0; i < n; i++)
			d->is_dirty[w->ids[i] - 1] = 0;
		d->n_dirty -= (u32)n;
		d->first_dirty = next;
	}
	return 0;
}

/* The order rule: whatever facts may refer to goes ahead of them. Dimensions refer to earlier
 * tables only. */
int lull_writer_pending(struct lull_writer *w, struct lull_err *err)
{
	int rc = w->names.lens.n ? write_names(w, err) : 0;

	for (const struct lull_table_desc *t = lull_tables; t->name && !rc; t++)
		if (t->kind == LULL_KIND_DIM)
			rc = write_dims(w, &w->dims[t->id], err);
	return rc;
}

/* Write buffered facts as one block. They are gone afterwards, in the file or counted as lost. */
static int write_facts(struct lull_writer *w, const struct lull_table_desc *table,
		       struct lull_rows *rows, u8 flags, struct lull_err *err)
{
	u32 n = rows->n;
	int rc;

	if (!n)
		return 0;
	rc = lull_writer_pending(w, err);
	if (!rc) {
		struct lull_encoded block =
			lull_encode_facts(w->encoder, table, rows->at, n, flags, w->part.next_seq);

		rc = append(w, &block, err);
	}
	rows->n = 0;
	if (rc) {
		w->stats.n_lost += n;
		return rc;
	}
	w->stats.n_rows += n;
	return note(w, lull_part_sync_if_due(&w->part, err), err);
}

/* Both buffers of a table; the first failure is reported, the second buffer is still tried.
 */
static int write_table(struct lull_writer *w, struct lull_facts *f, struct lull_err *err)
{
	struct lull_err second;
	int rc = write_facts(w, f->desc, &f->flat, 0, err);
	int rc_tall = write_facts(w, f->desc, &f->tall, LULL_BLOCK_TALL, rc ? &second : err);

	return rc ? rc : rc_tall;
}

/* ---- public functions ---- */

int lull_writer_open(struct lull_writer **out, const char *path, const struct lull_file_info *info,
		     struct lull_err *err)
{
	struct lull_writer *w = lull_writer_new();
	int rc = lull_part_create(&w->part, path, info, err);

	if (!rc) {
		rc = write_schema(w, err);
		if (rc)
			lull_part_discard(&w->part);
	}
	if (rc) {
		lull_writer_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void lull_writer_set_temporary(struct lull_writer *w)
{
	w->part.is_temporary = true;
}

/* Give a text the next id and put it on the list to write. */
static u32 add_name(struct lull_names *names, const char *text, size_t len)
{
	u32 len32 = (u32)len;

	lull_vec_add(&names->lens, &len32, 1);
	lull_str_add(&names->bytes, text, len);
	names->n_bytes += len;
	return ++names->n;
}

/* The id of a text that is interned, given the next id if it is new. */
static u32 intern(struct lull_names *names, const char *text, size_t len)
{
	bool is_new;
	u32 *id = lull_map_add(&names->ids, lull_hash(text, len), &is_new);

	if (is_new)
		*id = add_name(names, text, len);
	return *id;
}

u32 lull_writer_string(struct lull_writer *w, const char *text, size_t len)
{
	static const char other[] = "(other)";
	struct lull_names *names = &w->names;
	u32 *known;

	if (!text || !len)
		return 0;
	len = len < MAX_TEXT_BYTES ? len : MAX_TEXT_BYTES;
	if (names->n + 1 < LULL_MAX_NAMES && names->n_bytes + len <= LULL_MAX_NAMES_BYTES)
		return intern(names, text, len);
	known = lull_map_find(&names->ids, lull_hash(text, len));
	if (known)
		return *known;
	w->stats.n_other++;
	return intern(names, other, sizeof(other) - 1);
}

static void *push_row(struct lull_rows *rows, size_t row_bytes, const void *row)
{
	u8 *at;

	if (rows->n == rows->cap) {
		rows->cap = rows->cap ? rows->cap * 2 : FIRST_ROWS;
		rows->at = lull_realloc(rows->at, rows->cap, row_bytes);
	}
	at = memcpy(rows->at + rows->n * row_bytes, row, row_bytes);
	rows->n++;
	return at;
}

/* A long row; its end must not wrap, or a reader would take the block for damaged. */
static void push_tall(struct lull_facts *f, const void *row)
{
	u8 *at = push_row(&f->tall, f->desc->row_bytes, row);
	u64 start_ns, dur_ns;

	memcpy(&start_ns, at + f->desc->cols[0].row_off, sizeof(start_ns));
	memcpy(&dur_ns, at + f->dur_off, sizeof(dur_ns));
	if (dur_ns > UINT64_MAX - start_ns) {
		dur_ns = UINT64_MAX - start_ns;
		memcpy(at + f->dur_off, &dur_ns, sizeof(dur_ns));
	}
}

void lull_writer_add(struct lull_writer *w, enum lull_table table, const void *row)
{
	struct lull_facts *f = &w->facts[table];
	struct lull_err ignored; /* w->error already has it */
	u64 dur_ns = 0;

	assert(f->desc);
	if (f->dur_off)
		memcpy(&dur_ns, (const u8 *)row + f->dur_off, sizeof(dur_ns));
	if (dur_ns > LULL_TALL_NS) {
		push_tall(f, row);
		if (f->tall.n == LULL_MAX_ROWS)
			write_facts(w, f->desc, &f->tall, LULL_BLOCK_TALL, &ignored);
		return;
	}
	push_row(&f->flat, f->desc->row_bytes, row);
	if (f->flat.n == LULL_MAX_ROWS)
		write_facts(w, f->desc, &f->flat, 0, &ignored);
}

static void mark_dirty(struct lull_dims *d, u32 ix)
{
	d->n_dirty += !d->is_dirty[ix];
	d->is_dirty[ix] = 1;
	if (ix < d->first_dirty)
		d->first_dirty = ix;
}

u32 lull_writer_add_dim(struct lull_writer *w, enum lull_table table, const void *row)
{
	struct lull_dims *d = &w->dims[table];
	u32 old_cap = d->rows.cap;

	assert(d->desc);
	if (d->rows.n >= MAX_DIM_ROWS)
		return 0;
	push_row(&d->rows, d->desc->row_bytes, row);
	if (d->rows.cap != old_cap)
		d->is_dirty = lull_realloc(d->is_dirty, d->rows.cap, 1);
	d->is_dirty[d->rows.n - 1] = 0;
	mark_dirty(d, d->rows.n - 1);
	return d->rows.n;
}

const void *lull_writer_dim(struct lull_writer *w, enum lull_table table, u32 id)
{
	struct lull_dims *d = &w->dims[table];

	assert(id >= 1 && id <= d->rows.n);
	return d->rows.at + (size_t)(id - 1) * d->desc->row_bytes;
}

void lull_writer_set_dim(struct lull_writer *w, enum lull_table table, u32 id, const void *row)
{
	struct lull_dims *d = &w->dims[table];

	assert(id >= 1 && id <= d->rows.n);
	memcpy(d->rows.at + (size_t)(id - 1) * d->desc->row_bytes, row, d->desc->row_bytes);
	mark_dirty(d, id - 1);
}

u32 lull_writer_n_dim(struct lull_writer *w, enum lull_table table)
{
	return w->dims[table].rows.n;
}

int lull_writer_flush(struct lull_writer *w, struct lull_err *err)
{
	struct lull_facts *checkpoints = &w->facts[LULL_TABLE_checkpoint];
	struct lull_err later;
	int rc = lull_writer_pending(w, err);

	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct lull_facts *f = &w->facts[t->id];
		int rc_table;

		if (t->kind != LULL_KIND_FACT || f == checkpoints)
			continue;
		rc_table = write_table(w, f, rc ? &later : err);
		rc = rc ? rc : rc_table;
	}
	if (rc) {
		write_table(w, checkpoints, &later);
		return rc;
	}
	rc = write_table(w, checkpoints, err);
	return rc ? rc : note(w, lull_part_sync_if_due(&w->part, err), err);
}

struct lull_writer_stats lull_writer_stats(const struct lull_writer *w)
{
	struct lull_writer_stats stats = w->stats;

	stats.size_bytes = w->part.size_bytes;
	stats.n_blocks = w->part.entries.n;
	stats.n_dims = w->names.n;
	for (size_t t = 0; t < LULL_N_TABLE_IDS; t++)
		stats.n_dims += w->dims[t].rows.n;
	return stats;
}

int lull_writer_error(const struct lull_writer *w, struct lull_err *err)
{
	if (w->error.code)
		*err = w->error;
	return w->error.code;
}

int lull_writer_seal(struct lull_writer *w, struct lull_err *err)
{
	int rc = lull_writer_flush(w, err);

	if (!rc)
		rc = lull_part_seal(&w->part, err);
	lull_part_close(&w->part);
	lull_writer_free(w);
	return rc;
}

void lull_writer_abandon(struct lull_writer *w)
{
	lull_part_close(&w->part);
	lull_writer_free(w);
}

void lull_writer_discard(struct lull_writer *w)
{
	lull_part_discard(&w->part);
	lull_writer_free(w);
}
