/*
 * part - the file of a recording in progress: append blocks, and seal it.
 *
 * What it gives:  PATH.part with header and blocks; at sealing index, trailer and the final name.
 *                 At every moment before that PATH.part is readable; the trailer is valid only
 *                 when all before it is on disk.
 * Sync policy:    the disk starts on each block at once; waiting for it happens at most every 5 s
 *                 or 64 MB, and at sealing. What was handed to the system survives the death of
 *                 this process anyway.
 * Errors:         a block that could not be written is cut off again; the file is as before, and
 *                 the next may succeed.
 * Ownership:      the struct owns descriptor, names and entries. Release with lull_part_close()
 *                 or lull_part_discard().
 * Memory:         72 bytes a block, for the index.
 */
#ifndef LULL_TRACE_PART_H
#define LULL_TRACE_PART_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "trace/file_frame.h"

struct lull_part {
	int fd;
	char *path;	 /* final name */
	char *part_path; /* name while it is written; may be the final one (recovery in place) */
	u64 size_bytes;	 /* end of the last complete block */
	u32 next_seq;	 /* for the head of the next block */
	struct lull_vec entries; /* struct lull_entry of every block */
	u64 unsynced_bytes;
	u64 synced_ns;	   /* when it was last waited for */
	bool is_temporary; /* the disk is never waited for; set by the owner */
	bool is_torn; /* a failed write left bytes after size_bytes that could not be cut off */
};

/* Create PATH.part and write its header. Fails if PATH.part exists: it may be all that is left of a
 * recording. */
int lull_part_create(struct lull_part *p, const char *path, const struct lull_file_info *info,
		     struct lull_err *err);

/*
 * Continue a file: cut it to size_bytes and append after that. `entries` (n, copied) are its
 * blocks. At sealing it gets the name `path`, which may be part_path itself.
 */
int lull_part_resume(struct lull_part *p, const char *part_path, const char *path,
		     const struct lull_entry *entries, size_t n, u64 size_bytes,
		     struct lull_err *err);

/* Append a block whose head is `h`; its seq must be p->next_seq or, when copying, larger. */
int lull_part_append(struct lull_part *p, const u8 *block, const struct lull_block_head *h,
		     struct lull_err *err);

/* Wait for the disk if that is due. */
int lull_part_sync_if_due(struct lull_part *p, struct lull_err *err);

/* Sync, write index and trailer, sync, rename. The struct stays to be closed. */
int lull_part_seal(struct lull_part *p, struct lull_err *err);

/* Close and free; the file stays. Accepts a struct that could not be opened. */
void lull_part_close(struct lull_part *p);

/* Close, free, and remove the file. */
void lull_part_discard(struct lull_part *p);

#endif
