#include "trace/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/time.h"

#define SYNC_EVERY_NS	 (5 * LULL_NS_PER_S)
#define SYNC_EVERY_BYTES (64u << 20)

static void part_init(struct lull_part *p, const char *part_path, const char *path)
{
	*p = (struct lull_part){ .fd = -1,
				 .path = lull_strdup(path),
				 .part_path = lull_strdup(part_path) };
	lull_vec_init(&p->entries, sizeof(struct lull_entry));
	p->synced_ns = lull_now_ns();
}

/* Write at the end of the file; what a failing write has written is cut off again. */
static int append(struct lull_part *p, const u8 *bytes, size_t len, struct lull_err *err)
{
	if (lull_io_write_at(p->fd, bytes, len, p->size_bytes)) {
		lull_fail_errno(err, "writing %zu bytes to %s", len, p->part_path);
		p->is_torn = lull_io_truncate(p->fd, p->size_bytes) != 0;
		return err->code;
	}
	p->size_bytes += len;
	p->unsynced_bytes += len;
	return 0;
}

int lull_part_create(struct lull_part *p, const char *path, const struct lull_file_info *info,
		     struct lull_err *err)
{
	size_t cap = strlen(path) + sizeof(".part");
	char *part_path = lull_alloc(cap, 1);
	u8 header[LULL_HEADER_BYTES];
	int rc;

	snprintf(part_path, cap, "%s.part", path);
	part_init(p, part_path, path);
	free(part_path);
	p->fd = lull_io_create(p->part_path);
	if (p->fd < 0) {
		rc = errno == EEXIST ? lull_fail(err, LULL_E_IO,
						 "%s is an unfinished report of another recording; "
						 "run `lull recover %s` or remove it",
						 p->part_path, p->part_path)
				     : lull_fail_creating(err, p->part_path);
		lull_part_close(p);
		return rc;
	}
	lull_file_put_header(header, info);
	rc = append(p, header, sizeof(header), err);
	if (rc)
		lull_part_discard(p);
	return rc;
}

int lull_part_resume(struct lull_part *p, const char *part_path, const char *path,
		     const struct lull_entry *entries, size_t n, u64 size_bytes,
		     struct lull_err *err)
{
	int rc = 0;

	part_init(p, part_path, path);
	p->size_bytes = size_bytes;
	lull_vec_add(&p->entries, entries, n);
	for (size_t i = 0; i < n; i++)
		if (entries[i].seq >= p->next_seq)
			p->next_seq = entries[i].seq + 1;
	p->fd = open(part_path, O_RDWR | O_CLOEXEC);
	if (p->fd < 0)
		rc = lull_fail_errno(err, "opening %s", part_path);
	else if (lull_io_truncate(p->fd, size_bytes))
		rc = lull_fail_errno(err, "cutting %s to %llu bytes", part_path,
				     (unsigned long long)size_bytes);
	else
		lull_io_lock(p->fd);
	if (rc)
		lull_part_close(p);
	return rc;
}

int lull_part_append(struct lull_part *p, const u8 *block, const struct lull_block_head *h,
		     struct lull_err *err)
{
	struct lull_entry entry = lull_file_entry(h, p->size_bytes);
	int rc = append(p, block, h->size_bytes, err);

	if (rc)
		return rc;
	lull_vec_add(&p->entries, &entry, 1);
	p->next_seq = h->seq + 1;
	if (!p->is_temporary)
		lull_io_start_writeback(p->fd, entry.off, h->size_bytes);
	return 0;
}

static int sync_data(struct lull_part *p, struct lull_err *err)
{
	p->unsynced_bytes = 0;
	p->synced_ns = lull_now_ns();
	if (p->is_temporary)
		return 0;
	if (lull_io_sync_data(p->fd))
		return lull_fail_errno(err, "syncing %s", p->part_path);
	return 0;
}

int lull_part_sync_if_due(struct lull_part *p, struct lull_err *err)
{
	if (!p->unsynced_bytes)
		return 0;
	if (p->unsynced_bytes < SYNC_EVERY_BYTES && lull_now_ns() - p->synced_ns < SYNC_EVERY_NS)
		return 0;
	return sync_data(p, err);
}

int lull_part_seal(struct lull_part *p, struct lull_err *err)
{
	size_t len = lull_file_index_bytes(p->entries.n);
	u8 *index;
	int rc;

	/* The trailer is looked for at the end: nothing may lie after it. */
	if (p->is_torn && lull_io_truncate(p->fd, p->size_bytes))
		return lull_fail_errno(err, "cutting %s back", p->part_path);
	p->is_torn = false;
	rc = sync_data(p, err);
	if (rc)
		return rc;
	index = lull_alloc(len, 1);
	lull_file_put_index(index, p->entries.at, p->entries.n, p->size_bytes, p->next_seq);
	rc = append(p, index, len, err);
	free(index);
	if (!rc)
		rc = sync_data(p, err);
	if (!rc && strcmp(p->part_path, p->path) != 0 &&
	    (p->is_temporary ? rename(p->part_path, p->path)
			     : lull_io_rename_synced(p->part_path, p->path)))
		rc = lull_fail_errno(err, "renaming %s to %s", p->part_path, p->path);
	return rc;
}

void lull_part_close(struct lull_part *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
	free(p->part_path);
	lull_vec_release(&p->entries);
	*p = (struct lull_part){ .fd = -1 };
}

void lull_part_discard(struct lull_part *p)
{
	unlink(p->part_path);
	lull_part_close(p);
}
