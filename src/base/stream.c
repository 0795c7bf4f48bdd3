#include "base/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io.h"
#include "base/mem.h"

#define INPUT_BYTES (256u << 10)
/* A zstd frame may ask for a window of gigabytes; this is what `zstd -d` takes without being told
 * otherwise, too. */
#define MAX_WINDOW_LOG 27
#define GZIP_WINDOW    (15 + 16) /* largest window, gzip header expected: zlib.h, inflateInit2() */

enum packing { PLAIN, GZIP, ZSTD };

struct lull_stream {
	int fd;
	char *path;
	enum packing packing;
	u64 size_bytes;
	u64 off;	 /* where in the file the next piece lies */
	u8 *input;	 /* packed bytes */
	size_t input_at; /* first one that was not unpacked yet */
	size_t input_len;
	bool is_done; /* nothing more can be unpacked */
	bool is_cut;
	bool is_between; /* at the end of a member or frame: the file may end here */
	z_stream gzip;
	bool has_gzip;
	ZSTD_DStream *zstd;
	void (*watch)(void *ctx, u64 done_bytes);
	void *watch_ctx;
};

static enum packing packing_of(int fd)
{
	u8 magic[4] = { 0 };

	if (lull_io_read_at(fd, magic, sizeof(magic), 0) < (i64)sizeof(magic))
		return PLAIN;
	if (magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8)
		return GZIP;
	return memcmp(magic, "\x28\xb5\x2f\xfd", 4) ? PLAIN : ZSTD;
}

static int start_unpacking(struct lull_stream *s, struct lull_err *err)
{
	s->is_done = s->is_cut = s->is_between = false;
	s->input_at = s->input_len = 0;
	s->off = 0;
	if (s->packing == PLAIN)
		return 0;
	if (!s->input)
		s->input = lull_alloc(INPUT_BYTES, 1);
	if (s->packing == GZIP) {
		int rc = s->has_gzip ? inflateReset(&s->gzip) : inflateInit2(&s->gzip, GZIP_WINDOW);

		s->has_gzip = true;
		return rc == Z_OK ? 0
				  : lull_fail(err, LULL_E_NOMEM,
					      "not enough memory to decompress gzip");
	}
	if (!s->zstd)
		s->zstd = ZSTD_createDStream();
	if (!s->zstd)
		return lull_fail(err, LULL_E_NOMEM, "not enough memory to decompress zstd");
	ZSTD_initDStream(s->zstd);
	ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
	return 0;
}

int lull_stream_open(struct lull_stream **out, const char *path, struct lull_err *err)
{
	struct lull_stream *s = lull_alloc(1, sizeof(*s));
	struct stat st = { 0 };
	int rc = 0;

	s->path = lull_strdup(path);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		rc = lull_fail_errno(err, "opening %s", path);
	else if (fstat(s->fd, &st))
		rc = lull_fail_errno(err, "reading the state of %s", path);
	else if (!S_ISREG(st.st_mode))
		rc = lull_fail(err, LULL_E_FORMAT, "%s is not a file", path);
	if (!rc) {
		s->size_bytes = (u64)st.st_size;
		s->packing = packing_of(s->fd);
		rc = start_unpacking(s, err);
	}
	if (rc) {
		lull_stream_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void lull_stream_close(struct lull_stream *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	if (s->has_gzip)
		inflateEnd(&s->gzip);
	ZSTD_freeDStream(s->zstd);
	free(s->input);
	free(s->path);
	free(s);
}

/* ---- reading ---- */

static i64 read_file(struct lull_stream *s, void *to, size_t cap, struct lull_err *err)
{
	i64 n = lull_io_read_at(s->fd, to, cap, s->off);

	if (n < 0)
		return lull_fail_errno(err, "reading %s", s->path);
	s->off += (u64)n;
	return n;
}

/* More packed bytes if all were used; false at the end of the file, where is_cut is decided. */
static bool refill(struct lull_stream *s, int *rc, struct lull_err *err)
{
	i64 n;

	if (s->input_at < s->input_len)
		return true;
	n = read_file(s, s->input, INPUT_BYTES, err);
	if (n > 0) {
		s->input_at = 0;
		s->input_len = (size_t)n;
		return true;
	}
	*rc = n < 0 ? (int)n : 0;
	s->is_done = true;
	s->is_cut = !s->is_between;
	return false;
}

static void stop(struct lull_stream *s, bool is_cut)
{
	s->is_done = true;
	s->is_cut = is_cut;
}

/* Unpack some bytes; 0 says only that more input is needed. */
static size_t inflate_some(struct lull_stream *s, u8 *to, size_t cap)
{
	int rc;

	/* Padding after the last member, as tapes and some tools leave it, is no damage. */
	if (s->is_between && s->input[s->input_at] != 0x1f) {
		stop(s, false);
		return 0;
	}
	if (s->is_between)
		inflateReset(&s->gzip);
	s->is_between = false;
	s->gzip.next_in = s->input + s->input_at;
	s->gzip.avail_in = (uInt)(s->input_len - s->input_at);
	s->gzip.next_out = to;
	s->gzip.avail_out = (uInt)cap;
	rc = inflate(&s->gzip, Z_NO_FLUSH);
	s->input_at = s->input_len - s->gzip.avail_in;
	s->is_between = rc == Z_STREAM_END;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		stop(s, true);
	return cap - s->gzip.avail_out;
}

static size_t unzstd_some(struct lull_stream *s, u8 *to, size_t cap)
{
	ZSTD_inBuffer in = { s->input, s->input_len, s->input_at };
	ZSTD_outBuffer out = { to, cap, 0 };
	size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);

	s->input_at = in.pos;
	s->is_between = rc == 0;
	if (ZSTD_isError(rc))
		stop(s, true);
	return out.pos;
}

static i64 read_unpacked(struct lull_stream *s, void *to, size_t cap, struct lull_err *err)
{
	size_t n = 0;
	int rc = 0;

	cap = cap < INT32_MAX ? cap : INT32_MAX;
	while (n < cap && !s->is_done && refill(s, &rc, err))
		n += s->packing == GZIP ? inflate_some(s, (u8 *)to + n, cap - n)
					: unzstd_some(s, (u8 *)to + n, cap - n);
	return rc ? rc : (i64)n;
}

i64 lull_stream_read(struct lull_stream *s, void *to, size_t cap, struct lull_err *err)
{
	i64 n = s->packing == PLAIN ? read_file(s, to, cap, err) : read_unpacked(s, to, cap, err);

	if (s->watch)
		s->watch(s->watch_ctx, lull_stream_done_bytes(s));
	return n;
}

void lull_stream_watch(struct lull_stream *s, void (*watch)(void *ctx, u64 done_bytes), void *ctx)
{
	s->watch = watch;
	s->watch_ctx = ctx;
}

int lull_stream_rewind(struct lull_stream *s, struct lull_err *err)
{
	return start_unpacking(s, err);
}

bool lull_stream_is_cut(const struct lull_stream *s)
{
	return s->is_cut;
}

bool lull_stream_is_packed(const struct lull_stream *s)
{
	return s->packing != PLAIN;
}

u64 lull_stream_size_bytes(const struct lull_stream *s)
{
	return s->size_bytes;
}

u64 lull_stream_done_bytes(const struct lull_stream *s)
{
	return s->off - (s->input_len - s->input_at);
}

size_t lull_stream_tail(struct lull_stream *s, void *to, size_t cap)
{
	u64 len = s->size_bytes < cap ? s->size_bytes : cap;
	i64 n;

	if (s->packing != PLAIN)
		return 0;
	n = lull_io_read_at(s->fd, to, (size_t)len, s->size_bytes - len);
	return n < 0 ? 0 : (size_t)n;
}
