/*
 * A writer that keeps the end of its file only.
 *
 * Blocks stand for themselves: facts refer to names and dimensions by id, and to no other block. So
 * the tail of a file is a file, if it begins with all names and dimensions:
 *
 *	header | schema | names (copied) | dimensions (as known) | facts after a checkpoint (copied)
 *
 * Only numbers of blocks change, and with them the checksum of the head.
 */
#include "trace/writer_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Places in the head of a block, as block.h lists them. */
#define HEAD_SEQ_OFF 20u
#define HEAD_CRC_OFF 60u

/*
 * Calls are kept this much longer than other facts, so that no work is left without its call: work
 * of a device is recorded 0.2 s later than the call that launched it, and a checkpoint comes every
 * second.
 */
#define CALLS_NS 1500000000ull

static int read_at(const struct lull_part *p, void *to, size_t len, u64 off, struct lull_err *err)
{
	u8 *at = to;

	while (len) {
		ssize_t n = pread(p->fd, at, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lull_fail_errno(err, "reading %s", p->part_path);
		if (n == 0)
			return lull_fail(err, LULL_E_IO, "%s is shorter than it was", p->part_path);
		at += n;
		off += (u64)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Append a block of `old` to the present file, under the next number. */
static int copy_block(struct lull_writer *w, const struct lull_part *old,
		      const struct lull_entry *e, struct lull_str *room, struct lull_err *err)
{
	u8 *at = (u8 *)lull_str_room(room, e->size_bytes);
	u32 seq = w->part.next_seq, crc;
	struct lull_block_head h;

	if (read_at(old, at, e->size_bytes, e->off, err))
		return err->code;
	if (!lull_block_get_head(at, e->size_bytes, &h))
		return lull_fail(err, LULL_E_FORMAT, "%s: no block at %llu", old->part_path,
				 (unsigned long long)e->off);
	h.seq = seq;
	memcpy(at + HEAD_SEQ_OFF, &seq, sizeof(seq));
	crc = lull_block_head_crc(at, h.head_bytes);
	memcpy(at + HEAD_CRC_OFF, &crc, sizeof(crc));
	return lull_part_append(&w->part, at, &h, err);
}

static bool is_definition(const struct lull_entry *e)
{
	return e->kind == LULL_BLOCK_SCHEMA || e->kind == LULL_BLOCK_STRINGS;
}

/*
 * Index of the first block of facts that is kept: the one after the last checkpoint before
 * `from_ns`. Facts are written when they end, so all that end later follow it. A cut at the bounds
 * of each block would leave holes: the long and the short steps of one second are in two blocks,
 * and the block of the long ones may end before `from_ns` where that of the short ones does not.
 *
 * The last checkpoint is never cut off, because recovery continues from it and its open ranges.
 */
static size_t first_kept(const struct lull_part *old, u64 from_ns)
{
	const struct lull_entry *e = old->entries.at;
	size_t first = 0, next = 0;

	for (size_t i = 0; i < old->entries.n; i++) {
		if (e[i].kind != LULL_BLOCK_ROWS || e[i].table_id != LULL_TABLE_checkpoint)
			continue;
		first = next;
		if (e[i].max_end < from_ns)
			next = i + 1;
	}
	return first;
}

static void mark_all_dirty(struct lull_writer *w)
{
	for (size_t t = 0; t < LULL_N_TABLE_IDS; t++) {
		struct lull_dims *d = &w->dims[t];

		if (d->rows.n)
			memset(d->is_dirty, 1, d->rows.n);
		d->n_dirty = d->rows.n;
		d->first_dirty = 0;
	}
}

/* Fill the new file, which is w->part already, from the old one. */
static int fill(struct lull_writer *w, const struct lull_part *old, u64 from_ns,
		struct lull_err *err)
{
	size_t first_fact = first_kept(old, from_ns);
	size_t first_call = first_kept(old, from_ns > CALLS_NS ? from_ns - CALLS_NS : 0);
	const struct lull_entry *e = old->entries.at;
	struct lull_str room = LULL_STR_INIT;
	u64 n_rows = 0;
	int rc = 0;

	for (size_t i = 0; i < old->entries.n && !rc; i++)
		if (is_definition(&e[i]))
			rc = copy_block(w, old, &e[i], &room, err);
	mark_all_dirty(w);
	if (!rc)
		rc = lull_writer_pending(w, err);
	for (size_t i = 0; i < old->entries.n && !rc; i++) {
		bool is_call = e[i].table_id == LULL_TABLE_cuda_call;

		if (e[i].kind != LULL_BLOCK_ROWS || i < (is_call ? first_call : first_fact))
			continue;
		rc = copy_block(w, old, &e[i], &room, err);
		n_rows += e[i].n_rows;
	}
	lull_str_release(&room);
	if (!rc)
		w->stats.n_rows = n_rows;
	return rc;
}

/* Make PATH.part the file of the writer; *old receives the one before, which stays open. */
static int change_file(struct lull_writer *w, const char *path, u64 from_ns, struct lull_part *old,
		       struct lull_err *err)
{
	u8 header[LULL_HEADER_BYTES];
	struct lull_file_info info;
	struct lull_part fresh;
	u16 format;
	int rc = read_at(&w->part, header, sizeof(header), 0, err);

	if (!rc)
		rc = lull_file_get_header(header, &info, &format, err);
	if (!rc)
		rc = lull_part_create(&fresh, path, &info, err);
	if (rc)
		return rc;
	fresh.is_temporary = w->part.is_temporary;
	*old = w->part;
	w->part = fresh;
	rc = fill(w, old, from_ns, err);
	if (rc) {
		lull_part_discard(&w->part);
		w->part = *old;
	}
	return rc;
}

int lull_writer_trim(struct lull_writer *w, u64 from_ns, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_part old;
	char *name;
	int rc;

	lull_str_addf(&path, "%s.next", w->part.path);
	rc = change_file(w, path.at, from_ns, &old, err);
	lull_str_release(&path);
	if (rc)
		return rc;
	/* Whole before it takes the old one's place: at every moment one of the two can be read. */
	if (rename(w->part.part_path, old.part_path)) {
		rc = lull_fail_errno(err, "renaming %s to %s", w->part.part_path, old.part_path);
		lull_part_discard(&w->part);
		w->part = old;
		return rc;
	}
	name = w->part.path;
	w->part.path = old.path;
	old.path = name;
	name = w->part.part_path;
	w->part.part_path = old.part_path;
	old.part_path = name;
	lull_part_close(&old);
	return 0;
}

int lull_writer_fork(struct lull_writer *w, const char *path, u64 from_ns, struct lull_err *err)
{
	struct lull_part old;
	int rc = change_file(w, path, from_ns, &old, err);

	if (!rc) {
		w->part.is_temporary = false;
		lull_part_close(&old);
	}
	return rc;
}
