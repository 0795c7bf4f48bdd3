/*
 * writer - append rows to a report file, and seal it.
 *
 * What it gives:  row structs in, columnar blocks out (format: lull-report(5)). Facts are buffered
 *                 per table, cut into blocks of at most 65,536 rows in arrival order and sorted
 *                 inside the block; strings and dimension rows that a block refers to are always
 *                 written before it.
 * Crash safety:   the file is `PATH.part` until sealed and readable at every moment; nothing is
 *                 rewritten.
 * Errors:         rows never fail one by one. A failing write is kept and reported by flush, seal
 *                 and lull_writer_error(); rows that could not be written are counted
 *                 (lull_writer_stats.n_lost), and writing is tried again with the next block.
 * Order:          lull_writer_flush() writes the rows of `checkpoint` after those of all other
 *                 tables, so a checkpoint that is in the file means that what was added before it
 *                 is there too.
 * Memory:         bounded: one open block per table in use plus the encoder's scratch, the
 *                 dimensions, and 72 bytes a block for the index.
 * Threads:        one at a time.
 */
#ifndef LULL_TRACE_WRITER_H
#define LULL_TRACE_WRITER_H

#include "base/err.h"
#include "base/types.h"
#include "trace/tables.h"

struct lull_writer;

/* What the header of the file says. */
struct lull_file_info {
	u16 flags;	  /* LULL_FILE_* */
	u64 epoch_ns;	  /* CLOCK_MONOTONIC value that is time 0 of the file */
	u64 epoch_utc_ns; /* UTC at that moment */
	u8 id[16];	  /* random id of the recording */
};

#define LULL_FILE_SIMULATED 1 /* recorded with the simulated device */
#define LULL_FILE_IMPORTED  2 /* made from another tool's file */

struct lull_writer_stats {
	u64 n_rows;	/* fact rows written in blocks so far */
	u64 size_bytes; /* bytes of the file so far */
	u64 n_lost;	/* fact rows that could not be written */
	u64 n_blocks;
	u64 n_dims;  /* rows of all dimensions, and texts */
	u64 n_other; /* texts that became "(other)" because there were too many */
};

/*
 * Create PATH.part with its header and schema block; `path` is the final name. Fails if PATH.part
 * exists.
 */
int lull_writer_open(struct lull_writer **w, const char *path, const struct lull_file_info *info,
		     struct lull_err *err);

/* The file need not survive a crash of the machine: never wait for the disk. */
void lull_writer_set_temporary(struct lull_writer *w);

/*
 * Open an unsealed PATH.part again to append to it (`path` is the final name): blocks after the
 * last row of `checkpoint` are cut off, dimensions and strings are loaded, so that ids go on where
 * they ended. Without a checkpoint all facts are cut off, from the first of them on. The rows of
 * the last checkpoint and its open ranges are read with a reader before this is called.
 */
int lull_writer_reopen(struct lull_writer **w, const char *path, struct lull_err *err);

/*
 * The id of this text (may hold any bytes), interned. "" and NULL give 0. Bytes after the first
 * MiB are cut off. After 1 M texts or 64 MB: the id of "(other)", and n_other counts it.
 */
u32 lull_writer_string(struct lull_writer *w, const char *text, size_t len);

/* Append one row of a FACT table; `row` is its struct lull_X_row and is copied. */
void lull_writer_add(struct lull_writer *w, enum lull_table table, const void *row);

/* Append one row of a DIM table; returns its id, counted from 1, or 0 if there are 16 M already. */
u32 lull_writer_add_dim(struct lull_writer *w, enum lull_table table, const void *row);

/* The dimension row with this id, as last set; borrowed until the next call. */
const void *lull_writer_dim(struct lull_writer *w, enum lull_table table, u32 id);

/*
 * Replace a dimension row with new information; it is written again with the next flush or block.
 */
void lull_writer_set_dim(struct lull_writer *w, enum lull_table table, u32 id, const void *row);

/* Rows of a DIM table so far. */
u32 lull_writer_n_dim(struct lull_writer *w, enum lull_table table);

/*
 * Write everything buffered as (short) blocks. Called about once a second while recording. Fails
 * if something could not be written: facts are then counted as lost, dimensions and strings are
 * tried again later.
 */
int lull_writer_flush(struct lull_writer *w, struct lull_err *err);

/*
 * Forget the facts that were written before the last checkpoint before `from_ns`: a new file is
 * written and renamed over the old one. So the facts that are left have no holes. The last
 * checkpoint always stays. What is buffered stays buffered. After a failure everything is as
 * before.
 */
int lull_writer_trim(struct lull_writer *w, u64 from_ns, struct lull_err *err);

/*
 * Continue in PATH.part, which starts with what lull_writer_trim() would keep; the old file stays
 * as it is, without an owner. Fails if PATH.part exists; everything is as before then.
 */
int lull_writer_fork(struct lull_writer *w, const char *path, u64 from_ns, struct lull_err *err);

/* Counts so far. */
struct lull_writer_stats lull_writer_stats(const struct lull_writer *w);

/* The last failed write since the writer was opened: 0, or its code with the sentence in *err. */
int lull_writer_error(const struct lull_writer *w, struct lull_err *err);

/*
 * Flush, write index and trailer, sync, rename PATH.part to PATH. The writer is freed in any case;
 * after a failure PATH.part stays and can be recovered. Rows that were lost earlier do not make it
 * fail.
 */
int lull_writer_seal(struct lull_writer *w, struct lull_err *err);

/* Free the writer and leave PATH.part to another process that has it, too. */
void lull_writer_abandon(struct lull_writer *w);

/* Give up: free the writer and remove PATH.part. */
void lull_writer_discard(struct lull_writer *w);

#endif
