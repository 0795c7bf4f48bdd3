#include "trace/recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/sort.h"
#include "trace/issue.h"
#include "trace/reader_int.h"
#include "trace/writer_int.h"

#define PART_SUFFIX ".part"

char *lull_recover_name(const char *from)
{
	size_t len = strlen(from), cut = strlen(PART_SUFFIX);
	bool is_part = len > cut && strcmp(from + len - cut, PART_SUFFIX) == 0;

	return lull_strndup(from, is_part ? len - cut : len);
}

static int compare_off(const void *a, const void *b)
{
	const struct lull_entry *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* The whole blocks in the order they lie in the file, and what is lost. */
static void take_stock(struct lull_reader *r, struct lull_vec *whole,
		       struct lull_recover_stats *stats)
{
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(r, &n);

	stats->n_damaged = lull_reader_verify(r);
	stats->lost_bytes = lull_reader_lost_bytes(r);
	stats->was_sealed = lull_reader_is_sealed(r) && !stats->n_damaged;
	for (size_t i = 0; i < n; i++) {
		if (lull_reader_is_damaged(r, i)) {
			stats->lost_bytes += e[i].size_bytes;
			continue;
		}
		lull_vec_add(whole, &e[i], 1);
		stats->n_blocks++;
		stats->n_rows += e[i].kind == LULL_BLOCK_ROWS ? e[i].n_rows : 0;
	}
	if (whole->n)
		lull_sort(whole->at, whole->n, sizeof(*e), compare_off);
}

/* Copy the blocks one by one into a new file. */
static int copy_blocks(struct lull_part *part, struct lull_reader *r, const struct lull_vec *whole,
		       const char *to, struct lull_err *err)
{
	const struct lull_entry *e = whole->at;
	int rc = lull_part_create(part, to, lull_reader_info(r), err);

	if (rc)
		return rc;
	for (size_t i = 0; i < whole->n && !rc; i++) {
		const u8 *at = lull_input_view(&r->in, e[i].off, e[i].size_bytes, 0);
		struct lull_block_view v;

		if (!at || !lull_block_open(&v, at, e[i].size_bytes))
			rc = lull_fail(err, LULL_E_IO, "the file changed while it was read");
		else
			rc = lull_part_append(part, at, &v.head, err);
	}
	if (rc)
		lull_part_discard(part);
	return rc;
}

/* Go on after the last whole block. */
static int resume_in_place(struct lull_part *part, const struct lull_vec *whole, const char *from,
			   struct lull_err *err)
{
	const struct lull_entry *e = whole->at;
	u64 end = whole->n ? e[whole->n - 1].off + e[whole->n - 1].size_bytes : LULL_HEADER_BYTES;
	char *path = lull_recover_name(from);
	int rc = lull_part_resume(part, from, path, e, whole->n, end, err);

	free(path);
	return rc;
}

static void note_loss(struct lull_writer *w, const struct lull_recover_stats *stats)
{
	char detail[128];

	snprintf(detail, sizeof(detail), "%llu bytes lost, %llu damaged block%s",
		 (unsigned long long)stats->lost_bytes, (unsigned long long)stats->n_damaged,
		 stats->n_damaged == 1 ? "" : "s");
	lull_issue_write(w, LULL_ISSUE_recovered, 0, 1, detail);
}

/* A file that needs nothing but its name. */
static int rename_only(const char *from, struct lull_err *err)
{
	char *path = lull_recover_name(from);
	int rc = 0;

	if (strcmp(path, from) != 0 && lull_io_rename_synced(from, path))
		rc = lull_fail_errno(err, "renaming %s to %s", from, path);
	free(path);
	return rc;
}

static int recover(struct lull_reader *r, const char *from, const char *to,
		   struct lull_recover_stats *stats, struct lull_err *err)
{
	struct lull_writer *w;
	struct lull_part part;
	struct lull_vec whole;
	int rc;

	lull_vec_init(&whole, sizeof(struct lull_entry));
	take_stock(r, &whole, stats);
	if (stats->was_sealed && !to) {
		rc = rename_only(from, err);
	} else {
		rc = to ? copy_blocks(&part, r, &whole, to, err)
			: resume_in_place(&part, &whole, from, err);
		if (!rc) {
			w = lull_writer_adopt(&part, r);
			if (!stats->was_sealed)
				note_loss(w, stats);
			rc = lull_writer_seal(w, err);
		}
	}
	lull_vec_release(&whole);
	return rc;
}

int lull_recover_look(const char *from, struct lull_recover_stats *stats, struct lull_err *err)
{
	struct lull_reader *r;
	struct lull_vec whole;
	int rc;

	*stats = (struct lull_recover_stats){ 0 };
	rc = lull_reader_open(&r, from, err);
	if (rc)
		return rc;
	lull_vec_init(&whole, sizeof(struct lull_entry));
	take_stock(r, &whole, stats);
	lull_vec_release(&whole);
	lull_reader_close(r);
	return LULL_OK;
}

int lull_recover_file(const char *from, const char *to, struct lull_recover_stats *stats,
		      struct lull_err *err)
{
	struct lull_reader *r;
	int rc;

	*stats = (struct lull_recover_stats){ 0 };
	rc = lull_reader_open(&r, from, err);
	if (rc)
		return rc;
	rc = recover(r, from, to, stats, err);
	lull_reader_close(r);
	return rc;
}
