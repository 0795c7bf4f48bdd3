/*
 * bench_query - how fast SQL reads a report, and how fast the report becomes a SQLite file.
 *
 *	bench_query [KERNELS [FOLDER]]		(default 10 million, /tmp)
 *
 * The report is that of bench_make with kernels, copies and calls. Each query runs twice on an open
 * report, the better time counts; the export runs once, into FOLDER. The sqlite3 library reads the
 * export for comparison: the same query, in the same process.
 *
 * Each line is "name value unit".
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The better of two runs, ns. */
static u64 time_query(struct lull_query *q, const char *sql)
{
	const struct lull_query_limits none = { 0 };
	const struct lull_out_options options = { .format = LULL_OUT_FORMAT_csv,
						  .sort_ix = LULL_OUT_UNSORTED };
	FILE *null = fopen("/dev/null", "w");
	u64 best = UINT64_MAX;
	struct lull_err err;

	if (!null)
		die("/dev/null cannot be opened");
	for (int round = 0; round < 2; round++) {
		u64 begin_ns = lull_now_ns();

		if (lull_query_run(q, sql, &none, &options, null, &err))
			die(err.msg);
		if (lull_now_ns() - begin_ns < best)
			best = lull_now_ns() - begin_ns;
	}
	fclose(null);
	return best;
}

/* The same with the export. */
static u64 time_sqlite(const char *path, const char *sql)
{
	u64 best = UINT64_MAX;
	sqlite3 *db;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
	for (int round = 0; round < 2; round++) {
		u64 begin_ns = lull_now_ns();

		if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
			die(sqlite3_errmsg(db));
		if (lull_now_ns() - begin_ns < best)
			best = lull_now_ns() - begin_ns;
	}
	sqlite3_close(db);
	return best;
}

static u64 export(struct lull_reader *r, const char *path)
{
	const struct lull_export_options all = { .tables = { .elem_bytes = sizeof(char *) } };
	const struct lull_export_target target = { path, true };
	u64 begin_ns = lull_now_ns();
	struct lull_err err;

	if (lull_export_write(r, lull_export_find("sqlite"), &all, &target, &err))
		die(err.msg);
	return lull_now_ns() - begin_ns;
}

static void measure(struct lull_reader *r, const char *sqlite_path)
{
	struct lull_table_stats kernels = lull_reader_stats(r, LULL_TABLE_kernel);
	u64 n_rows = kernels.n_rows + lull_reader_stats(r, LULL_TABLE_cuda_call).n_rows +
		     lull_reader_stats(r, LULL_TABLE_memcpy).n_rows +
		     lull_reader_stats(r, LULL_TABLE_cuda_sync).n_rows;
	u64 middle = kernels.first_ns / 2 + kernels.last_ns / 2;
	u64 width = (kernels.last_ns - kernels.first_ns) / 100, scan_ns, window_ns;
	static const char scan[] = "SELECT sum(end - start) FROM " KERNELS;
	struct lull_str window = LULL_STR_INIT;
	struct lull_query *q;
	struct lull_err err;

	lull_str_addf(&window,
		      "SELECT count(*), sum(end - start) FROM " KERNELS
		      " WHERE start BETWEEN %llu AND %llu",
		      (unsigned long long)middle, (unsigned long long)(middle + width));
	if (lull_query_open(&q, r, &err))
		die(err.msg);
	scan_ns = time_query(q, scan);
	window_ns = time_query(q, window.at);
	printf("query_scan %.1f M rows/s\n", (f64)kernels.n_rows * 1e3 / (f64)scan_ns);
	printf("query_window %.1f ms\n", (f64)window_ns / 1e6);
	printf("query_join %.1f M rows/s\n",
	       (f64)kernels.n_rows * 1e3 /
		       (f64)time_query(q, "SELECT count(*) FROM " KERNELS
					  " JOIN StringIds ON id = shortName"));
	lull_query_close(q);
	printf("export_sqlite %.2f M rows/s\n", (f64)n_rows * 1e3 / (f64) export(r, sqlite_path));
	printf("query_scan_gain %.2f x of SQLite's own table\n",
	       (f64)time_sqlite(sqlite_path, scan) / (f64)scan_ns);
	printf("query_window_gain %.1f x of SQLite's own table\n",
	       (f64)time_sqlite(sqlite_path, window.at) / (f64)window_ns);
	lull_str_release(&window);
}

int main(int argc, char **argv)
{
	struct gen_report_options options = { .n_kernels = 10000000 };
	const char *folder = argc > 2 ? argv[2] : "/tmp";
	struct lull_str path = LULL_STR_INIT, sqlite_path = LULL_STR_INIT;
	struct lull_reader *r;
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
