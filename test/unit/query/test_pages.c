#include "unit/unit.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/io.h"
#include "query/pages.h"

static char path[] = "/tmp/lull-test-XXXXXX";

static const struct lull_value null = { .kind = LULL_IS_NULL };

static struct lull_value whole(i64 v)
{
	return (struct lull_value){ .kind = LULL_IS_INT, .i = v };
}

static struct lull_value text(const char *at, size_t len)
{
	return (struct lull_value){ .kind = LULL_IS_TEXT, .text = at, .len = (u32)len };
}

/* A file with two tables; returns where they begin. */
static void make_file(u32 roots[2])
{
	sqlite3_stmt *stmt;
	sqlite3 *db;

	unlink(path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "PRAGMA page_size = 4096; CREATE TABLE t (a INTEGER, b TEXT, c "
			     "REAL, d BLOB); CREATE TABLE u (a INTEGER);",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_master ORDER BY name", -1, &stmt, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		roots[i] = (u32)sqlite3_column_int(stmt, 0);
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* The first cell of a query's answer. */
static void expect(const char *sql, const char *answer)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(stmt, 0), answer);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

static void expect_number(const char *sql, u64 number)
{
	char answer[32];

	snprintf(answer, sizeof(answer), "%llu", (unsigned long long)number);
	expect(sql, answer);
}

/* Fill t with `n` rows 1..n and texts of `len` bytes, u with one row. */
static int fill(u64 n, size_t len, struct lull_err *err)
{
	char *filler = malloc(len + 1);
	struct lull_value one = whole(7);
	struct lull_pages *p;
	u32 roots[2];

	memset(filler, 'x', len);
	make_file(roots);
	assert_int_equal(lull_pages_open(&p, path, err), 0);
	lull_pages_begin(p, roots[0]);
	for (u64 i = 1; i <= n; i++) {
		struct lull_value row[] = { whole((i64)i), text(filler, len), null, null };

		lull_pages_add(p, row, 4);
	}
	lull_pages_end(p);
	lull_pages_begin(p, roots[1]);
	lull_pages_add(p, &one, 1);
	lull_pages_end(p);
	free(filler);
	return lull_pages_close(p, err);
}

static void sqlite_finds_trees_of_any_height_whole(void **state)
{
	static const struct {
		u64 n;
		size_t len;
	} cases[] = { { 0, 0 },
		      { 1, 5 },
		      { 100, 0 },
		      { 500, 30 },
		      { 40000, 20 },
		      /* Rows that fill a page each make three levels. */
		      { 3000, 3900 },
		      { 300, 4061 },
		      { 40, 5000 },
		      { 9, 100000 } };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct lull_err err;

		assert_int_equal(fill(cases[i].n, cases[i].len, &err), 0);
		expect("PRAGMA integrity_check", "ok");
		expect_number("SELECT count(*) FROM t", cases[i].n);
		expect_number("SELECT ifnull(sum(a), 0) FROM t", cases[i].n * (cases[i].n + 1) / 2);
		expect_number("SELECT ifnull(sum(length(b)), 0) FROM t", cases[i].n * cases[i].len);
		expect_number("SELECT count(*) FROM t WHERE a = rowid", cases[i].n);
		if (cases[i].n)
			expect_number("SELECT a FROM t WHERE rowid = (SELECT max(rowid) FROM t)",
				      cases[i].n);
		expect("SELECT a FROM u", "7");
	}
}

static void every_value_comes_back(void **state)
{
	static const i64 numbers[] = { 0,
				       1,
				       2,
				       -1,
				       127,
				       128,
				       -128,
				       -129,
				       32767,
				       32768,
				       -32769,
				       8388607,
				       8388608,
				       -8388609,
				       2147483647,
				       2147483648,
				       -2147483649,
				       1ll << 47,
				       (1ll << 47) - 1,
				       -(1ll << 47) - 1,
				       INT64_MAX,
				       INT64_MIN };
	struct lull_value row[4] = { null,
				     text("t", 1),
				     { .kind = LULL_IS_REAL, .f = -0.25 },
				     { .kind = LULL_IS_BLOB, .text = "\0\1", .len = 2 } };
	struct lull_pages *p;
	struct lull_err err;
	u32 roots[2];

	(void)state;
	make_file(roots);
	assert_int_equal(lull_pages_open(&p, path, &err), 0);
	lull_pages_begin(p, roots[0]);
	for (size_t i = 0; i < LULL_COUNT_OF(numbers); i++) {
		row[0] = whole(numbers[i]);
		lull_pages_add(p, row, 4);
	}
	lull_pages_end(p);
	lull_pages_begin(p, roots[1]);
	lull_pages_end(p);
	assert_int_equal(lull_pages_close(p, &err), 0);
	expect("PRAGMA integrity_check", "ok");
	for (size_t i = 0; i < LULL_COUNT_OF(numbers); i++) {
		char sql[64], answer[32];

		snprintf(sql, sizeof(sql), "SELECT a FROM t WHERE rowid = %zu", i + 1);
		snprintf(answer, sizeof(answer), "%lld", (long long)numbers[i]);
		expect(sql, answer);
	}
	expect("SELECT b || c || hex(d) FROM t WHERE rowid = 22", "t-0.250001");
	expect("SELECT count(*) FROM u", "0");
}

static void a_failing_write_is_told(void **state)
{
	struct lull_err err;

	(void)state;
#ifdef LULL_IO_FAULTS
	for (u64 n = 1; n <= 3; n++) {
		lull_io_fail_at(n, ENOSPC, false);
		assert_int_equal(fill(5000, 500, &err), LULL_E_IO);
		assert_non_null(strstr(err.msg, "No space left"));
		lull_io_fail_at(0, 0, false);
	}
#else
	(void)err;
	test_skip("failing writes need a build with LULL_IO_FAULTS (make SAN=1)");
#endif
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sqlite_finds_trees_of_any_height_whole),
		cmocka_unit_test(every_value_comes_back),
		cmocka_unit_test(a_failing_write_is_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
