/*
 * fuzz_reader - throw changed reports at the reader and at recovery, for a while.
 *
 *	fuzz_reader [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * A small report of every kind of block is changed at random: bits, runs of bytes, cuts, blocks
 * moved about. Half of the time all checksums are made right again, so that the changes reach the
 * code that reads them. Then everything is read, the file is recovered, and the result is read
 * again. Built with ASan and UBSan: they are the judges, together with two rules: nothing may hang,
 * and what recovery makes is sealed and whole. The seed of a failure is the last one printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/whole_file.h"
#include "base/str.h"
#include "export/export.h"
#include "trace/crc.h"
#include "trace/file_frame.h"
#include "trace/reader.h"
#include "trace/recover.h"
#include "trace/text.h"

#define HANG_S 20 /* a run takes milliseconds */

static const char report[] =
	"meta key=host.name value=test\nprocess pid=10 name=train\n"
	"lane process=1 tid=10 name=main\nlane process=1 tid=11 name=worker\n"
	"module path=/bin/x\nframe module=1 addr=64 function=f\nframe module=1 addr=65\n"
	"stack frame=1\nstack parent=1 frame=2\n"
	"label name=forward\nlabel name=backward\n"
	"range start=100us dur=20us lane=1 label=1\n"
	"range start=105us dur=5us depth=1 lane=1 label=2\n"
	"range start=1s dur=3s lane=1 label=2\n"
	"oscall start=1us dur=7us lane=2 name=read ret=-1\n"
	"sample start=5us lane=1 stack=2 cpu=3\n"
	"flush\nlane#2 name=renamed\n"
	"range start=300us dur=20us lane=2 label=1\n"
	"mark start=310us lane=1 label=2 payload=5\n"
	"checkpoint start=1\nflush\nissue issue=3 name=x severity=2 count=1\n";

struct fuzz {
	u64 state;
	u8 *bytes;
	size_t len;
};

static u64 next_random(struct fuzz *f)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->state;
}

static size_t below(struct fuzz *f, size_t n)
{
	return n ? (size_t)(next_random(f) % n) : 0;
}

/* ---- changes ---- */

static void flip_bits(struct fuzz *f)
{
	for (size_t n = 1 + below(f, 8); n; n--)
		f->bytes[below(f, f->len)] ^= (u8)(1u << below(f, 8));
}

/* Values that are at the edge of something. */
static void plant_value(struct fuzz *f)
{
	static const u64 values[] = { 0,	  1,	      0x7f,	  0xff,	      0xffff,
				      0x10000,	  0x10001,    0x7fffffff, 0xffffffff, 1ULL << 32,
				      1ULL << 62, 1ULL << 63, UINT64_MAX };
	u64 v = values[below(f, LULL_COUNT_OF(values))];
	size_t width = (size_t)1 << below(f, 4), at = below(f, f->len - 8);

	/* Most fields are aligned to their width. */
	memcpy(f->bytes + at / width * width, &v, width);
}

static void fill_run(struct fuzz *f)
{
	size_t at = below(f, f->len), n = below(f, 200);

	memset(f->bytes + at, (int)below(f, 256), n < f->len - at ? n : f->len - at);
}

static void cut_end(struct fuzz *f)
{
	f->len -= below(f, f->len - LULL_HEADER_BYTES);
}

/* Copy a piece that begins at a block border over another. */
static void move_piece(struct fuzz *f)
{
	size_t from = below(f, f->len / 64) * 64, to = below(f, f->len / 64) * 64;
	size_t n = (1 + below(f, 16)) * 64, end = from > to ? from : to;

	memmove(f->bytes + to, f->bytes + from, n < f->len - end ? n : f->len - end);
}

static void change(struct fuzz *f)
{
	void (*const changes[])(struct fuzz *) = { flip_bits, plant_value, plant_value,
						   fill_run,  cut_end,	   move_piece };

	for (size_t n = 1 + below(f, 4); n && f->len > 2 * LULL_HEADER_BYTES; n--)
		changes[below(f, LULL_COUNT_OF(changes))](f);
}

/* ---- checksums made right again ---- */

static void repair_block(struct fuzz *f, size_t off)
{
	u8 *at = f->bytes + off;
	size_t left = f->len - off, n_cols = lull_get_u16(at + 10);
	size_t head = LULL_BLOCK_HEAD_BYTES + n_cols * LULL_BLOCK_COL_BYTES;

	if (n_cols > LULL_MAX_COLS || head > left)
		return;
	lull_put_u16(at + 4, (u16)head);
	for (size_t c = 0; c < n_cols; c++) {
		u8 *col = at + LULL_BLOCK_HEAD_BYTES + c * LULL_BLOCK_COL_BYTES;
		u64 col_off = lull_get_u32(col + 8), bytes = lull_get_u32(col + 12);

		if (col_off <= left && bytes <= left - col_off)
			lull_put_u32(col + 40, lull_crc32c(0, at + col_off, bytes));
	}
	lull_put_u32(at + 60, lull_block_head_crc(at, head));
}

static void repair(struct fuzz *f)
{
	u8 *trailer = f->bytes + f->len - LULL_TRAILER_BYTES;
	u64 index_off, index_bytes;

	lull_put_u32(f->bytes + 60, lull_crc32c(0, f->bytes, 60));
	for (size_t off = LULL_HEADER_BYTES; off + LULL_BLOCK_HEAD_BYTES <= f->len; off += 64)
		if (memcmp(f->bytes + off, "LULB", 4) == 0)
			repair_block(f, off);
	if (f->len < 2 * LULL_HEADER_BYTES)
		return;
	index_off = lull_get_u64(trailer + 8);
	index_bytes = lull_get_u64(trailer + 16);
	if (index_off <= f->len && index_bytes <= f->len - index_off)
		lull_put_u32(trailer + 40, lull_crc32c(0, f->bytes + index_off, index_bytes));
	lull_put_u32(trailer + 60, lull_crc32c(0, trailer, 60));
}

/* ---- one run ---- */

static void store(const char *path, const struct fuzz *f)
{
	FILE *to = fopen(path, "wb");

	if (!to || fwrite(f->bytes, 1, f->len, to) != f->len || fclose(to)) {
		perror(path);
		exit(1);
	}
}

/*
 * Formats that make a folder do so beside the report, where it is removed again. SQLite is left
 * out: it takes a hundred times as long as all the others.
 */
static void export_all(struct lull_reader *r, const char *path)
{
	const struct lull_export_options all = { .tables = { .elem_bytes = sizeof(char *) } };
	struct lull_str out = LULL_STR_INIT;
	FILE *null = fopen("/dev/null", "w");
	struct lull_err err;

	for (const struct lull_export *const *e = lull_exports; *e; e++) {
		lull_str_clear(&out);
		lull_str_addf(&out, "%s.%s", path, (*e)->name);
		if ((*e)->write)
			(*e)->write(r, &all, null, &err);
		if ((*e)->write_path && (*e)->member_suffix) {
			(*e)->write_path(r, &all, lull_str_text(&out), &err);
			lull_whole_file_remove(lull_str_text(&out));
		}
	}
	lull_str_release(&out);
	fclose(null);
}

/* Read all there is, in all the ways there are. Returns whether it could be opened. */
static bool read_all(const char *path, bool must_be_whole)
{
	struct lull_reader *r;
	struct lull_err err;

	if (lull_reader_open(&r, path, &err))
		return false;
	/* Before anything is decoded: checksums that are right do not make sense of nonsense. */
	if (must_be_whole && (!lull_reader_is_sealed(r) || lull_reader_verify(r))) {
		fprintf(stderr, "fuzz_reader: recovery made a report that is not whole\n");
		abort();
	}
	export_all(r, path);
	lull_reader_verify(r);
	lull_reader_close(r);
	return true;
}

static void run(const char *path, const char *copy, const struct fuzz *original, u64 seed)
{
	struct lull_recover_stats stats;
	struct lull_err err;
	struct fuzz f = { .state = seed * 0x9e3779b97f4a7c15ULL | 1, .len = original->len };

	f.bytes = lull_alloc(f.len, 1);
	memcpy(f.bytes, original->bytes, f.len);
	change(&f);
	if (next_random(&f) & 1)
		repair(&f);
	store(path, &f);
	alarm(HANG_S);
	read_all(path, false);
	if (lull_recover_file(path, copy, &stats, &err) == 0 && !read_all(copy, true)) {
		fprintf(stderr, "fuzz_reader: recovery made a file that cannot be opened\n");
		abort();
	}
	alarm(0);
	unlink(copy);
	free(f.bytes);
}

static void load(const char *path, struct fuzz *f)
{
	FILE *from = fopen(path, "rb");

	f->bytes = lull_alloc(1 << 20, 1);
	f->len = from ? fread(f->bytes, 1, 1 << 20, from) : 0;
	if (from)
		fclose(from);
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = seed;
	u64 end_ns = lull_now_ns() + seconds * LULL_NS_PER_S;
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct lull_str path = LULL_STR_INIT, copy = LULL_STR_INIT;
	struct fuzz original = { 0 };
	struct lull_err err;

	lull_str_addf(&path, "%s/lull-fuzz-%d.lull", folder, (int)getpid());
	lull_str_addf(&copy, "%s/lull-fuzz-%d-copy.lull", folder, (int)getpid());
	if (lull_text_write(report, lull_str_text(&path), &err)) {
		fprintf(stderr, "fuzz_reader: %s\n", err.msg);
		return 1;
	}
	load(lull_str_text(&path), &original);
	for (; lull_now_ns() < end_ns; seed++) {
		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		run(lull_str_text(&path), lull_str_text(&copy), &original, seed);
	}
	fprintf(stderr, "\r");
	printf("fuzz_reader: %llu reports of %zu bytes, no fault\n",
	       (unsigned long long)(seed - first), original.len);
	unlink(lull_str_text(&path));
	lull_str_release(&path);
	lull_str_release(&copy);
	free(original.bytes);
	return 0;
}
