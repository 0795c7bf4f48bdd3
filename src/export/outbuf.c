#include "export/outbuf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

void lull_outbuf_init(struct lull_outbuf *b, FILE *to, enum lull_outbuf_kind kind)
{
	*b = (struct lull_outbuf){ .to = to };
	/* In front of what is gathered there is the end of what was gathered before. */
	b->memory = lull_alloc(LULL_GZIP_WINDOW + LULL_OUTBUF_BYTES + LULL_GZIP_PAD, 1);
	b->at = b->memory + LULL_GZIP_WINDOW;
	if (kind == LULL_OUTBUF_PLAIN)
		return;
	b->gzip = lull_alloc(1, sizeof(*b->gzip));
	b->packed = lull_alloc(LULL_GZIP_BOUND(LULL_OUTBUF_BYTES), 1);
	lull_gzip_init(b->gzip);
}

static void write_bytes(struct lull_outbuf *b, const u8 *bytes, size_t len)
{
	if (!b->error && len && fwrite(bytes, 1, len, b->to) != len)
		b->error = errno ? errno : EIO;
}

static void pack(struct lull_outbuf *b)
{
	if (b->error || !b->len)
		return;
	write_bytes(b, b->packed, lull_gzip_pack(b->gzip, b->at, b->len, b->packed));
	/* A block shorter than the window leaves a part of the text before it there. */
	memmove(b->memory, b->memory + b->len, LULL_GZIP_WINDOW);
}

void lull_outbuf_flush(struct lull_outbuf *b)
{
	if (b->gzip)
		pack(b);
	else
		write_bytes(b, b->at, b->len);
	b->len = 0;
}

void lull_outbuf_add(struct lull_outbuf *b, const void *bytes, size_t len)
{
	const u8 *from = bytes;

	while (len) {
		size_t n = len < LULL_OUTBUF_SMALL ? len : LULL_OUTBUF_SMALL;

		memcpy(lull_outbuf_room(b, n), from, n);
		b->len += n;
		from += n;
		len -= n;
	}
}

int lull_outbuf_finish(struct lull_outbuf *b, struct lull_err *err)
{
	lull_outbuf_flush(b);
	if (b->gzip)
		write_bytes(b, b->packed, lull_gzip_finish(b->gzip, b->packed));
	if (!b->error && (fflush(b->to) || ferror(b->to)))
		b->error = errno ? errno : EIO;
	free(b->gzip);
	free(b->packed);
	free(b->memory);
	errno = b->error;
	return b->error ? lull_fail_errno(err, "writing the export") : LULL_OK;
}
