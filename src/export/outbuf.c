#include "export/outbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

/*
 * Level 1: traces are repetitive enough that the others cost more than they gain. 10 M kernels and
 * calls as Chrome JSON: level 1 makes 9 % of them, level 6 takes four times as long for 6 %.
 */
#define GZIP_LEVEL  1
#define GZIP_WINDOW (15 + 16) /* the largest, with gzip's header and trailer */
#define GZIP_MEMORY 9	      /* more is quicker */

void lull_outbuf_init(struct lull_outbuf *b, FILE *to, enum lull_outbuf_kind kind)
{
	*b = (struct lull_outbuf){ .to = to, .at = lull_alloc(LULL_OUTBUF_BYTES, 1) };
	if (kind == LULL_OUTBUF_PLAIN)
		return;
	b->gzip = lull_alloc(1, sizeof(z_stream));
	b->packed = lull_alloc(LULL_OUTBUF_BYTES, 1);
	if (deflateInit2(b->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		b->error = ENOMEM;
}

static void write_bytes(struct lull_outbuf *b, const u8 *bytes, size_t len)
{
	if (!b->error && len && fwrite(bytes, 1, len, b->to) != len)
		b->error = errno ? errno : EIO;
}

static void pack(struct lull_outbuf *b, const u8 *bytes, size_t len, int how)
{
	z_stream *z = b->gzip;

	z->next_in = (u8 *)(uintptr_t)bytes;
	z->avail_in = (uInt)len;
	do {
		z->next_out = b->packed;
		z->avail_out = LULL_OUTBUF_BYTES;
		deflate(z, how);
		write_bytes(b, b->packed, LULL_OUTBUF_BYTES - z->avail_out);
	} while (!z->avail_out && !b->error);
}

static void put(struct lull_outbuf *b, const u8 *bytes, size_t len)
{
	if (b->error)
		return;
	if (b->gzip)
		pack(b, bytes, len, Z_NO_FLUSH);
	else
		write_bytes(b, bytes, len);
}

void lull_outbuf_flush(struct lull_outbuf *b)
{
	put(b, b->at, b->len);
	b->len = 0;
}

void lull_outbuf_add(struct lull_outbuf *b, const void *bytes, size_t len)
{
	if (len <= LULL_OUTBUF_ROOM) {
		memcpy(lull_outbuf_room(b, len), bytes, len);
		b->len += len;
		return;
	}
	lull_outbuf_flush(b);
	put(b, bytes, len);
}

int lull_outbuf_finish(struct lull_outbuf *b, struct lull_err *err)
{
	lull_outbuf_flush(b);
	if (b->gzip) {
		if (!b->error)
			pack(b, NULL, 0, Z_FINISH);
		deflateEnd(b->gzip);
	}
	if (!b->error && (fflush(b->to) || ferror(b->to)))
		b->error = errno ? errno : EIO;
	free(b->gzip);
	free(b->packed);
	free(b->at);
	errno = b->error;
	return b->error ? lull_fail_errno(err, "writing the export") : LULL_OK;
}
