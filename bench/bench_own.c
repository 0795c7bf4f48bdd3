/*
 * bench_own - what our own code is worth where a library that is linked anyway could do the same.
 *
 *	bench_own [KERNELS [FOLDER]]	(default 200,000 in /tmp)
 *
 * gzip:   Chrome's JSON of the report of gen_report.h, packed by export/gzip.c and by zlib at its
 *         fastest. zlib unpacks what we packed, and it has to be the same text.
 * pages:  rows of a table as nsys has it for kernels, by query/pages.c and by INSERT of SQLite in
 *         its fastest settings. SQLite has to find the same sums in both files, and no fault.
 *
 * Each line is "name value unit", by time of the CPU, the best of three in turns.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "bench/gen_report.h"
#include "export/export.h"
#include "export/gzip.h"
#include "query/pages.h"
#include "trace/reader.h"

#define N_TURNS 3
#define N_COLS	18 /* as CUPTI_ACTIVITY_KIND_KERNEL of nsys, about */

static void die(const char *why)
{
	fprintf(stderr, "bench_own: %s\n", why);
	exit(1);
}

static u64 cpu_ns(void)
{
	return lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void keep_best(u64 *best_ns, u64 since_ns)
{
	u64 ns = cpu_ns() - since_ns;

	if (!*best_ns || ns < *best_ns)
		*best_ns = ns;
}

/* ---- gzip ---- */

struct text {
	u8 *memory, *at; /* with the room in front that lull_gzip_pack() looks at */
	size_t len;
};

/* The report as JSON. */
static struct text make_text(const char *path)
{
	struct lull_export_options all = { .tables = { .elem_bytes = sizeof(char *) },
					   .is_plain = true };
	char *json = NULL;
	size_t len = 0;
	FILE *to = lull_memstream(&json, &len);
	struct lull_reader *r;
	struct lull_err err;
	struct text text;

	if (lull_reader_open(&r, path, &err) ||
	    lull_export_find("chrome")->write(r, &all, to, &err))
		die(err.msg);
	lull_reader_close(r);
	fclose(to);
	text.memory = lull_alloc(LULL_GZIP_WINDOW + len + LULL_GZIP_PAD, 1);
	text.at = text.memory + LULL_GZIP_WINDOW;
	text.len = len;
	memcpy(text.at, json, len);
	free(json);
	return text;
}

static size_t pack_by_us(const struct text *text, u8 *to)
{
	struct lull_gzip *g = lull_alloc(1, sizeof(*g));
	size_t n = 0;

	lull_gzip_init(g);
	for (size_t at = 0; at < text->len; at += LULL_GZIP_BLOCK) {
		size_t left = text->len - at;

		n += lull_gzip_pack(g, text->at + at,
				    left < LULL_GZIP_BLOCK ? left : LULL_GZIP_BLOCK, to + n);
	}
	n += lull_gzip_finish(g, to + n);
	free(g);
	return n;
}

static size_t pack_by_zlib(const struct text *text, u8 *to, size_t room)
{
	z_stream z = { .next_in = text->at,
		       .avail_in = (uInt)text->len,
		       .next_out = to,
		       .avail_out = (uInt)room };

	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&z, Z_FINISH) != Z_STREAM_END)
		die("zlib cannot pack");
	deflateEnd(&z);
	return z.total_out;
}

static void check_packed(const struct text *text, u8 *packed, size_t n)
{
	u8 *back = lull_alloc(text->len, 1);
	z_stream z = { .next_in = packed,
		       .avail_in = (uInt)n,
		       .next_out = back,
		       .avail_out = (uInt)text->len };

	if (inflateInit2(&z, 15 + 16) != Z_OK || inflate(&z, Z_FINISH) != Z_STREAM_END ||
	    z.total_out != text->len || memcmp(back, text->at, text->len) != 0)
		die("what we packed is another text");
	inflateEnd(&z);
	free(back);
}

static void measure_gzip(const char *path)
{
	struct text text = make_text(path);
	size_t room = LULL_GZIP_BOUND(text.len), n_ours = 0, n_zlib = 0;
	u8 *to = lull_alloc(room, 1);
	u64 ours_ns = 0, zlib_ns = 0;

	for (int i = 0; i < N_TURNS; i++) {
		u64 since = cpu_ns();

		n_zlib = pack_by_zlib(&text, to, room);
		keep_best(&zlib_ns, since);
		since = cpu_ns();
		n_ours = pack_by_us(&text, to);
		keep_best(&ours_ns, since);
	}
	check_packed(&text, to, n_ours);
	printf("gzip_own %.0f MB/s (1 to %.2f)\n", (f64)text.len * 1e3 / (f64)ours_ns,
	       (f64)text.len / (f64)n_ours);
	printf("gzip_zlib %.0f MB/s (1 to %.2f)\n", (f64)text.len * 1e3 / (f64)zlib_ns,
	       (f64)text.len / (f64)n_zlib);
	printf("gzip_size %.2f x (of ours, in zlib's)\n", (f64)n_ours / (f64)n_zlib);
	free(to);
	free(text.memory);
}

/* ---- pages ---- */

static void ask(sqlite3 *db, const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		die(why);
}

/* One number that SQLite answers. */
static i64 number_of(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	i64 n;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK ||
	    sqlite3_step(stmt) != SQLITE_ROW)
		die(sqlite3_errmsg(db));
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

static sqlite3 *open_db(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	ask(db, "PRAGMA page_size=4096; PRAGMA auto_vacuum=NONE; PRAGMA journal_mode=OFF;"
		"PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-65536;");
	return db;
}

static sqlite3 *make_db(const char *path)
{
	struct lull_str sql = LULL_STR_INIT;
	sqlite3 *db;

	unlink(path);
	db = open_db(path);
	lull_str_puts(&sql, "CREATE TABLE t (");
	for (int i = 0; i < N_COLS; i++)
		lull_str_addf(&sql, "%sc%d INTEGER", i ? ", " : "", i);
	lull_str_puts(&sql, ");");
	ask(db, lull_str_text(&sql));
	lull_str_release(&sql);
	return db;
}

/* Two times that rise, and numbers of all sizes. */
static i64 cell(u64 row, int col)
{
	return col < 2 ? (i64)(row * 7919 + (u64)col * 3500)
		       : (i64)((row * 2654435761u) >> col * 2);
}

static void fill_by_sqlite(const char *path, u64 n_rows)
{
	sqlite3 *db = make_db(path);
	struct lull_str sql = LULL_STR_INIT;
	sqlite3_stmt *stmt;

	lull_str_puts(&sql, "INSERT INTO t VALUES (?");
	for (int i = 1; i < N_COLS; i++)
		lull_str_puts(&sql, ", ?");
	lull_str_puts(&sql, ")");
	ask(db, "BEGIN");
	if (sqlite3_prepare_v2(db, lull_str_text(&sql), -1, &stmt, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	for (u64 row = 0; row < n_rows; row++) {
		for (int i = 0; i < N_COLS; i++)
			sqlite3_bind_int64(stmt, i + 1, cell(row, i));
		if (sqlite3_step(stmt) != SQLITE_DONE)
			die(sqlite3_errmsg(db));
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	ask(db, "COMMIT");
	sqlite3_close(db);
	lull_str_release(&sql);
}

static void fill_by_us(const char *path, u64 n_rows)
{
	struct lull_value values[N_COLS];
	struct lull_pages *pages;
	struct lull_err err;
	sqlite3 *db = make_db(path);
	u32 root = (u32)number_of(db, "SELECT rootpage FROM sqlite_master WHERE name = 't'");

	sqlite3_close(db);
	if (lull_pages_open(&pages, path, &err))
		die(err.msg);
	lull_pages_begin(pages, root);
	for (u64 row = 0; row < n_rows; row++) {
		for (int i = 0; i < N_COLS; i++)
			values[i] = (struct lull_value){ .kind = LULL_IS_INT, .i = cell(row, i) };
		lull_pages_add(pages, values, N_COLS);
	}
	lull_pages_end(pages);
	if (lull_pages_close(pages, &err))
		die(err.msg);
}

static i64 sum_of(const char *path)
{
	sqlite3 *db = open_db(path);
	i64 n = number_of(db, "SELECT sum(c0 % 1000 + c2 % 1000 + c17) + count(*) FROM t");

	if (number_of(db, "SELECT count(*) FROM pragma_integrity_check "
			  "WHERE integrity_check <> 'ok'"))
		die("SQLite finds a fault in the file");
	sqlite3_close(db);
	return n;
}

static void measure_pages(const char *folder, u64 n_rows)
{
	struct lull_str ours = LULL_STR_INIT, sqlites = LULL_STR_INIT;
	u64 ours_ns = 0, sqlite_ns = 0;

	lull_str_addf(&ours, "%s/bench-own-%d.a", folder, (int)getpid());
	lull_str_addf(&sqlites, "%s/bench-own-%d.b", folder, (int)getpid());
	for (int i = 0; i < N_TURNS; i++) {
		u64 since = cpu_ns();

		fill_by_sqlite(lull_str_text(&sqlites), n_rows);
		keep_best(&sqlite_ns, since);
		since = cpu_ns();
		fill_by_us(lull_str_text(&ours), n_rows);
		keep_best(&ours_ns, since);
	}
	if (sum_of(lull_str_text(&ours)) != sum_of(lull_str_text(&sqlites)))
		die("the two files differ");
	printf("pages_own %.2f M rows/s\n", (f64)n_rows * 1e3 / (f64)ours_ns);
	printf("pages_sqlite %.2f M rows/s\n", (f64)n_rows * 1e3 / (f64)sqlite_ns);
	unlink(lull_str_text(&ours));
	unlink(lull_str_text(&sqlites));
	lull_str_release(&ours);
	lull_str_release(&sqlites);
}

int main(int argc, char **argv)
{
	const struct gen_report_options options = {
		.n_kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000,
	};
	const char *folder = argc > 2 ? argv[2] : "/tmp";
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;

	lull_str_addf(&path, "%s/bench-own-%d.lull", folder, (int)getpid());
	if (gen_report(lull_str_text(&path), &options, &err))
		die(err.msg);
	measure_gzip(lull_str_text(&path));
	measure_pages(folder, options.n_kernels);
	unlink(lull_str_text(&path));
	lull_str_release(&path);
	return 0;
}
