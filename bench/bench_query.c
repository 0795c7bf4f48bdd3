/*
 * bench_query - how fast SQL reads a report, and how fast the report becomes a SQLite file.
 *
 *	bench_query [KERNELS [FOLDER]]		(default 10 million, /tmp)
 *
 * The report is that of bench_make with kernels, copies and calls. Each query runs twice on an open
 * report, the better time counts; the export runs once, into FOLDER. The sqlite3 library reads the
 * export for comparison: the same queries, in the same process, and a copy of the table of kernels
 * into another file. Fails if the two do not give the same answers.
 *
 * Each line is "name value unit"; times are those of the CPU.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "bench/gen_report.h"
#include "export/export.h"
#include "query/query.h"
#include "trace/reader.h"

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"

static void die(const char *message)
{
	fprintf(stderr, "bench_query: %s\n", message);
	exit(1);
}

static u64 cpu_ns(void)
{
	return lull_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The better of two runs, ns; *answer receives the first row of the last one. */
static u64 time_query(struct lull_query *q, const char *sql, struct lull_str *answer)
{
	const struct lull_query_limits none = { 0 };
	const struct lull_out_options options = { .format = LULL_OUT_FORMAT_csv,
						  .sort_ix = LULL_OUT_UNSORTED };
	u64 best = UINT64_MAX;
	struct lull_err err;

	for (int round = 0; round < 2; round++) {
		char *text = NULL, *row;
		size_t len = 0;
		FILE *to = open_memstream(&text, &len);
		u64 took = cpu_ns();

		if (!to || lull_query_run(q, sql, &none, &options, to, &err))
			die(to ? err.msg : "no memory");
		took = cpu_ns() - took;
		best = took < best ? took : best;
		fclose(to);
		row = strchr(text, '\n'); /* after the names of the columns */
		lull_str_clear(answer);
		lull_str_addf(answer, "%.*s", row ? (int)strcspn(row + 1, "\n") : 0,
			      row ? row + 1 : "");
		free(text);
	}
	return best;
}

static int take_row(void *ctx, int n, char **values, char **names)
{
	struct lull_str *answer = ctx;

	(void)names;
	for (int i = 0; i < n; i++)
		lull_str_addf(answer, "%s%s", i ? "," : "", values[i] ? values[i] : "");
	return 0;
}

static sqlite3 *open_sqlite(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	return db;
}

/* The same with the export; dies if it says anything else. */
static u64 time_sqlite(sqlite3 *db, const char *sql, const struct lull_str *expected)
{
	struct lull_str answer = LULL_STR_INIT;
	u64 best = UINT64_MAX;

	for (int round = 0; round < 2; round++) {
		u64 took = cpu_ns();

		lull_str_clear(&answer);
		if (sqlite3_exec(db, sql, take_row, &answer, NULL) != SQLITE_OK)
			die(sqlite3_errmsg(db));
		took = cpu_ns() - took;
		best = took < best ? took : best;
	}
	if (!answer.len || strcmp(lull_str_text(&answer), lull_str_text(expected)) != 0) {
		fprintf(stderr, "bench_query: SQLite says \"%s\", lull \"%s\"\n",
			lull_str_text(&answer), lull_str_text(expected));
		exit(1);
	}
	lull_str_release(&answer);
	return best;
}

/*
 * Rows a nanosecond of a copy of the kernels by SQLite itself, into a file as the export makes one.
 */
static f64 copy_rate(sqlite3 *db, const char *path, u64 n_rows)
{
	struct lull_str sql = LULL_STR_INIT;
	u64 took = cpu_ns();

	lull_str_addf(
		&sql,
		"ATTACH '%s' AS other; PRAGMA other.journal_mode = OFF; PRAGMA other.synchronous "
		"= OFF; CREATE TABLE other.kernels AS SELECT * FROM " KERNELS "; DETACH other",
		path);
	if (sqlite3_exec(db, sql.at, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	took = cpu_ns() - took;
	unlink(path);
	lull_str_release(&sql);
	return (f64)n_rows / (f64)took;
}

static u64 export(struct lull_reader *r, const char *path)
{
	const struct lull_export_options all = { .tables = { .elem_bytes = sizeof(char *) } };
	const struct lull_export_target target = { path, true };
	u64 begin_ns = cpu_ns();
	struct lull_err err;

	if (lull_export_write(r, lull_export_find("sqlite"), &all, &target, &err))
		die(err.msg);
	return cpu_ns() - begin_ns;
}

/* A question, what lull answers and how long it takes. */
struct question {
	const char *sql;
	struct lull_str answer;
	u64 ns;
};

static void ask(struct lull_query *q, struct question *what, const char *sql)
{
	*what = (struct question){ .sql = sql, .answer = LULL_STR_INIT };
	what->ns = time_query(q, sql, &what->answer);
}

static void compare(const char *path, const struct question *scan, const struct question *window,
		    u64 n_kernels)
{
	struct lull_str copy = LULL_STR_INIT;
	sqlite3 *db = open_sqlite(path);

	lull_str_addf(&copy, "%s-copy", path);
	printf("query_scan_gain %.2f x of SQLite's own table\n",
	       (f64)time_sqlite(db, scan->sql, &scan->answer) / (f64)scan->ns);
	printf("query_window_gain %.1f x of SQLite's own table\n",
	       (f64)time_sqlite(db, window->sql, &window->answer) / (f64)window->ns);
	printf("sqlite_copy %.2f M rows/s\n", copy_rate(db, copy.at, n_kernels) * 1e3);
	sqlite3_close(db);
	lull_str_release(&copy);
}

static void measure(struct lull_reader *r, const char *sqlite_path)
{
	struct lull_table_stats kernels = lull_reader_stats(r, LULL_TABLE_kernel);
	u64 n_rows = kernels.n_rows + lull_reader_stats(r, LULL_TABLE_cuda_call).n_rows +
		     lull_reader_stats(r, LULL_TABLE_memcpy).n_rows +
		     lull_reader_stats(r, LULL_TABLE_cuda_sync).n_rows;
	u64 middle = kernels.first_ns / 2 + kernels.last_ns / 2;
	u64 width = (kernels.last_ns - kernels.first_ns) / 100;
	struct question scan, window, join;
	struct lull_str text = LULL_STR_INIT;
	struct lull_query *q;
	struct lull_err err;

	lull_str_addf(&text,
		      "SELECT count(*), sum(end - start) FROM " KERNELS
		      " WHERE start BETWEEN %llu AND %llu",
		      (unsigned long long)middle, (unsigned long long)(middle + width));
	if (lull_query_open(&q, r, &err))
		die(err.msg);
	ask(q, &scan, "SELECT count(*), sum(end - start) FROM " KERNELS);
	ask(q, &window, text.at);
	ask(q, &join, "SELECT count(*) FROM " KERNELS " JOIN StringIds ON id = shortName");
	lull_query_close(q);
	if (strtoull(scan.answer.at, NULL, 10) != kernels.n_rows ||
	    strtoull(join.answer.at, NULL, 10) != kernels.n_rows ||
	    strtoull(window.answer.at, NULL, 10) < kernels.n_rows / 1000)
		die("queries do not see all kernels");
	printf("query_scan %.1f M rows/s\n", (f64)kernels.n_rows * 1e3 / (f64)scan.ns);
	printf("query_window %.1f ms\n", (f64)window.ns / 1e6);
	printf("query_join %.1f M rows/s\n", (f64)kernels.n_rows * 1e3 / (f64)join.ns);
	printf("export_sqlite %.2f M rows/s\n", (f64)n_rows * 1e3 / (f64) export(r, sqlite_path));
	compare(sqlite_path, &scan, &window, kernels.n_rows);
	lull_str_release(&scan.answer);
	lull_str_release(&window.answer);
	lull_str_release(&join.answer);
	lull_str_release(&text);
}

int main(int argc, char **argv)
{
	struct gen_report_options options = { .n_kernels = 10000000 };
	const char *folder = argc > 2 ? argv[2] : "/tmp";
	struct lull_str path = LULL_STR_INIT, sqlite_path = LULL_STR_INIT;
	struct lull_reader *r = NULL;
	struct lull_err err;

	if (argc > 1)
		options.n_kernels = strtoull(argv[1], NULL, 10);
	lull_str_addf(&path, "%s/bench-query-%d.lull", folder, (int)getpid());
	lull_str_addf(&sqlite_path, "%s/bench-query-%d.sqlite", folder, (int)getpid());
	if (gen_report(path.at, &options, &err) || lull_reader_open(&r, path.at, &err))
		die(err.msg);
	measure(r, sqlite_path.at);
	lull_reader_close(r);
	unlink(path.at);
	unlink(sqlite_path.at);
	lull_str_release(&path);
	lull_str_release(&sqlite_path);
	return 0;
}
