/*
 * outbuf - bytes on their way to a file, gathered, and gzipped where the format wants it.
 *
 *	lull_outbuf_init(&b, to, LULL_OUTBUF_GZIP);
 *	u8 *at = lull_outbuf_room(&b, 64);	(at least 64 bytes)
 *	...
 *	lull_outbuf_used(&b, n);		(how many of them it became)
 *	rc = lull_outbuf_finish(&b, err);
 *
 * Cost:           one comparison for what was gathered; a megabyte of memory.
 * Errors:         kept until lull_outbuf_finish(), which tells the first.
 */
#ifndef LULL_EXPORT_OUTBUF_H
#define LULL_EXPORT_OUTBUF_H

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/types.h"

#define LULL_OUTBUF_BYTES (1u << 20)
#define LULL_OUTBUF_ROOM  (1u << 16) /* most that can be asked for at once */

enum lull_outbuf_kind { LULL_OUTBUF_PLAIN, LULL_OUTBUF_GZIP };

struct lull_outbuf {
	FILE *to;
	u8 *at;
	size_t len;
	void *gzip; /* private: the compressor, or NULL */
	u8 *packed; /* private: what comes out of it */
	int error;  /* private: errno of the first failure */
};

/* Begin to write to `to`, which stays the caller's. */
void lull_outbuf_init(struct lull_outbuf *b, FILE *to, enum lull_outbuf_kind kind);

/* Write what was gathered. */
void lull_outbuf_flush(struct lull_outbuf *b);

/* Append bytes, any number of them. */
void lull_outbuf_add(struct lull_outbuf *b, const void *bytes, size_t len);

/* Write the rest and free everything. LULL_E_IO if something did not reach the stream. */
int lull_outbuf_finish(struct lull_outbuf *b, struct lull_err *err);

/* A place for `n` bytes, at most LULL_OUTBUF_ROOM. */
static inline u8 *lull_outbuf_room(struct lull_outbuf *b, size_t n)
{
	if (b->len + n > LULL_OUTBUF_BYTES)
		lull_outbuf_flush(b);
	return b->at + b->len;
}

/* Say how many of them were filled. */
static inline void lull_outbuf_used(struct lull_outbuf *b, size_t n)
{
	b->len += n;
}

#endif
