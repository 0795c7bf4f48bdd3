/*
 * stream - the bytes of a file from start to end, decompressed if it is gzip or zstd.
 *
 * What it gives:  reading in pieces, and rewinding. Whether a file is packed is seen by its
 *                 first bytes, not by its name. Several gzip members or zstd frames are one text.
 * Damage:         packed data that ends early or is damaged reads like the end of the file;
 *                 lull_stream_is_cut() tells the two apart.
 * Memory:         some 300 KiB, whatever the file says.
 * Threads:        one at a time.
 */
#ifndef LULL_BASE_STREAM_H
#define LULL_BASE_STREAM_H

#include "base/err.h"
#include "base/types.h"

struct lull_stream;

/* Open a file, which must be a regular one: pipes cannot rewind. */
int lull_stream_open(struct lull_stream **s, const char *path, struct lull_err *err);

/* Close and free. Accepts NULL. */
void lull_stream_close(struct lull_stream *s);

/*
 * Read up to `cap` bytes; the number read, less than cap only at the end, or a negative code if the
 * system refuses.
 */
i64 lull_stream_read(struct lull_stream *s, void *to, size_t cap, struct lull_err *err);

/* Begin again. */
int lull_stream_rewind(struct lull_stream *s, struct lull_err *err);

/* True if packed data ended in the middle or could not be unpacked further. */
bool lull_stream_is_cut(const struct lull_stream *s);

/* True if the file is packed. */
bool lull_stream_is_packed(const struct lull_stream *s);

/* Length of the file as it is on the disk, and how much of it has been read. */
u64 lull_stream_size_bytes(const struct lull_stream *s);
u64 lull_stream_done_bytes(const struct lull_stream *s);

/* Call `watch` after each read with how much of the file has been read; NULL for no watcher. */
void lull_stream_watch(struct lull_stream *s, void (*watch)(void *ctx, u64 done_bytes), void *ctx);

/*
 * The last bytes of a file that is not packed, at most `cap`; the number read. 0 if it is packed.
 * Where reading goes on is not changed.
 */
size_t lull_stream_tail(struct lull_stream *s, void *to, size_t cap);

#endif
