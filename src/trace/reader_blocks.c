/* How a reader finds the blocks of a file: by the index of a sealed one, by walking over any other.
 */
#include "trace/reader_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

#define WALK_AHEAD   16384u	/* a head with its directory, in one read */
#define SEARCH_AHEAD (1u << 20) /* when looking for the next head in damaged bytes */

static bool knows_kind(u8 kind)
{
	return kind >= LULL_BLOCK_ROWS && kind <= LULL_BLOCK_INDEX;
}

/* A writer of a later version may say that skipping a block would be wrong. */
static int check_kinds(const struct lull_reader *r, struct lull_err *err)
{
	const struct lull_entry *e = r->entries.at;

	for (size_t i = 0; i < r->entries.n; i++)
		if (e[i].flags & LULL_BLOCK_MUST_KNOW && !knows_kind(e[i].kind))
			return lull_fail(
				err, LULL_E_UNSUPPORTED,
				"the report has blocks of kind %u, which lull %s does not know",
				e[i].kind, LULL_VERSION);
	return 0;
}

/* Take the index if the file has a valid one. */
static bool read_index(struct lull_reader *r)
{
	struct lull_trailer t;
	const u8 *at;

	if (r->in.size_bytes < LULL_HEADER_BYTES + LULL_TRAILER_BYTES)
		return false;
	at = lull_input_view(&r->in, r->in.size_bytes - LULL_TRAILER_BYTES, LULL_TRAILER_BYTES, 0);
	if (!at || !lull_file_get_trailer(at, r->in.size_bytes, &t))
		return false;
	at = lull_input_view(&r->in, t.index_off, t.index_bytes, 0);
	if (!at || !lull_file_index_is_whole(at, &t))
		return false;
	at += LULL_BLOCK_HEAD_BYTES;
	for (u64 i = 0; i < t.n_blocks; i++, at += LULL_INDEX_ENTRY_BYTES) {
		struct lull_entry e;

		if (!lull_file_get_entry(at, &e)) {
			lull_vec_release(&r->entries);
			return false;
		}
		lull_vec_add(&r->entries, &e, 1);
	}
	return true;
}

/* The head at `off`; false if there is none. */
static bool head_at(struct lull_reader *r, u64 off, size_t ahead, struct lull_block_head *h)
{
	u64 rest = r->in.size_bytes - off;
	size_t len = rest < LULL_MAX_HEAD_BYTES ? (size_t)rest : LULL_MAX_HEAD_BYTES;
	const u8 *at = lull_input_view(&r->in, off, len, ahead);

	return at && lull_block_get_head(at, len, h);
}

/*
 * Walk from block to block. Where the next head is not what it should be, search on at steps of the
 * alignment for one that is right and has a larger number than the last: bytes of an older file or
 * of a program's own data that look like a block do not.
 */
static void walk(struct lull_reader *r)
{
	u64 off = LULL_HEADER_BYTES, next_seq = 0;
	size_t ahead = WALK_AHEAD - LULL_MAX_HEAD_BYTES;

	while (r->in.size_bytes - off >= LULL_BLOCK_HEAD_BYTES) {
		struct lull_block_head h;

		if (!head_at(r, off, ahead, &h) || h.size_bytes > r->in.size_bytes - off ||
		    h.seq < next_seq) {
			off += LULL_BLOCK_ALIGN;
			r->lost_bytes += LULL_BLOCK_ALIGN;
			ahead = SEARCH_AHEAD;
			continue;
		}
		if (h.kind != LULL_BLOCK_INDEX) {
			struct lull_entry e = lull_file_entry(&h, off);

			lull_vec_add(&r->entries, &e, 1);
		}
		next_seq = (u64)h.seq + 1;
		off += h.size_bytes;
		ahead = WALK_AHEAD - LULL_MAX_HEAD_BYTES;
	}
	r->lost_bytes += r->in.size_bytes - off;
}

/*
 * An index is sorted already, if its writer was honest: entries of a table are found by binary
 * search.
 */
static void sort_entries(struct lull_reader *r)
{
	struct lull_entry *e = r->entries.at;
	size_t i = 1;

	while (i < r->entries.n && lull_file_compare_entries(&e[i - 1], &e[i]) <= 0)
		i++;
	if (i < r->entries.n)
		lull_sort(e, r->entries.n, sizeof(*e), lull_file_compare_entries);
}

int lull_reader_find_blocks(struct lull_reader *r, struct lull_err *err)
{
	r->is_sealed = read_index(r);
	if (r->is_sealed)
		lull_input_map(&r->in);
	else
		walk(r);
	sort_entries(r);
	r->is_damaged = lull_alloc(r->entries.n + 1, 1);
	return check_kinds(r, err);
}

void lull_reader_mark_damaged(struct lull_reader *r, size_t ix)
{
	r->n_damaged += !r->is_damaged[ix];
	r->is_damaged[ix] = 1;
}

static const char *kind_name(const struct lull_entry *e)
{
	const struct lull_table_desc *table = lull_table_find(e->table_id);

	return e->kind == LULL_BLOCK_STRINGS  ? "names"
	       : e->kind == LULL_BLOCK_SCHEMA ? "schema"
	       : table			      ? table->name
					      : "a table of another version";
}

bool lull_reader_name_damage(const struct lull_reader *r, struct lull_str *to)
{
	const struct lull_entry *e = r->entries.at;
	const char *before = " (";

	if (!r->n_damaged)
		return false;
	lull_str_addf(to, "%llu of %zu blocks", (unsigned long long)r->n_damaged, r->entries.n);
	/* Entries are sorted by table. */
	for (size_t i = 0, n = 0; i < r->entries.n; i++) {
		n += r->is_damaged[i];
		if (i + 1 < r->entries.n && e[i + 1].table_id == e[i].table_id &&
		    e[i + 1].kind == e[i].kind)
			continue;
		if (n) {
			lull_str_addf(to, "%s%s %zu", before, kind_name(&e[i]), n);
			before = ", ";
		}
		n = 0;
	}
	lull_str_puts(to, ")");
	return true;
}

/* The index is a copy of the heads; where they differ, one of them is wrong. */
static bool is_same(const struct lull_entry *e, const struct lull_block_head *h)
{
	struct lull_entry found = lull_file_entry(h, e->off);

	return found.min_start == e->min_start && found.max_end == e->max_end &&
	       found.max_start == e->max_start && found.lanes == e->lanes &&
	       found.n_rows == e->n_rows && found.size_bytes == e->size_bytes &&
	       found.table_id == e->table_id && found.kind == e->kind && found.flags == e->flags &&
	       found.seq == e->seq && found.first_id == e->first_id;
}

bool lull_reader_open_block(struct lull_reader *r, size_t ix, struct lull_block_view *v)
{
	const struct lull_entry *e = lull_vec_get(&r->entries, ix);
	const u8 *at = lull_input_view(&r->in, e->off, e->size_bytes, 0);

	if (at && lull_block_open(v, at, e->size_bytes) && is_same(e, &v->head))
		return true;
	lull_reader_mark_damaged(r, ix);
	return false;
}

u64 lull_reader_verify(struct lull_reader *r)
{
	for (size_t i = 0; i < r->entries.n; i++) {
		struct lull_block_view v;

		if (lull_reader_open_block(r, i, &v) && !lull_block_is_whole(&v))
			lull_reader_mark_damaged(r, i);
	}
	return r->n_damaged;
}
