/*
 * outbuf - buffered output to a file, gzipped if the format needs it.
 *
 *	lull_outbuf_init(&b, to, LULL_OUTBUF_GZIP);
 *	u8 *at = lull_outbuf_room(&b, 64);	(at least 64 bytes)
 *	...
 *	lull_outbuf_used(&b, n);		(how many of them were written)
 *	rc = lull_outbuf_finish(&b, err);
 *
 * Cost:           one comparison per write; a megabyte of memory.
 * Errors:         kept until lull_outbuf_finish(), which returns the first.
 */
#ifndef LULL_EXPORT_OUTBUF_H
#define LULL_EXPORT_OUTBUF_H

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/types.h"
#include "export/gzip.h"

#define LULL_OUTBUF_BYTES LULL_GZIP_BLOCK /* what is gathered is packed as one block */
#define LULL_OUTBUF_SMALL (1u << 16)	  /* pieces in which long texts are gathered */

enum lull_outbuf_kind { LULL_OUTBUF_PLAIN, LULL_OUTBUF_GZIP };

struct lull_outbuf {
	FILE *to;
	u8 *at;
	size_t len;
	u8 *memory;		/* private: where `at` lies */
	struct lull_gzip *gzip; /* private: the compressor, or NULL */
	u8 *packed;		/* private: what comes out of it */
	int error;		/* private: errno of the first failure */
};

/* Begin to write to `to`, which stays the caller's. */
void lull_outbuf_init(struct lull_outbuf *b, FILE *to, enum lull_outbuf_kind kind);

/* Write what was gathered. */
void lull_outbuf_flush(struct lull_outbuf *b);

/* Append bytes, any number of them. */
void lull_outbuf_add(struct lull_outbuf *b, const void *bytes, size_t len);

/* Write the rest and free everything. LULL_E_IO if something did not reach the stream. */
int lull_outbuf_finish(struct lull_outbuf *b, struct lull_err *err);

/* A place for `n` bytes, at most LULL_OUTBUF_BYTES. */
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
