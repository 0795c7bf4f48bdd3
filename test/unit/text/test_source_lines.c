#include "unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch.h"
#include "text/source_lines.h"

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* What is printed around a line; the caller frees it. */
static char *printed(const char *path, u32 line, u32 around, bool *is_there)
{
	char *text = NULL;
	size_t len;
	FILE *to = lull_memstream(&text, &len);

	*is_there = lull_source_print(to, path, line, around);
	fclose(to);
	return text;
}

static void expect_printed(const char *path, u32 line, u32 around, const char *expected)
{
	bool is_there;
	char *text = printed(path, line, around, &is_there);

	assert_int_equal(is_there, expected != NULL);
	assert_string_equal(text, expected ? expected : "");
	free(text);
}

static void the_line_is_marked_among_its_neighbours(void **state)
{
	struct lull_scratch s = LULL_SCRATCH_INIT;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_scratch_make(&s, "a.py", &err), 0);
	write_file(s.file.at, "one\n\ttwo\nthree\x01\nfour");
	expect_printed(s.file.at, 2, 1, "     1 | one\n>    2 |     two\n     3 | three\n");
	expect_printed(s.file.at, 1, 1, ">    1 | one\n     2 |     two\n");
	expect_printed(s.file.at, 4, 0, ">    4 | four\n");
	expect_printed(s.file.at, 4, 9,
		       "     1 | one\n     2 |     two\n     3 | three\n>    4 | four\n");
	expect_printed(s.file.at, 5, 1, NULL);
	expect_printed(s.file.at, 0, 1, NULL);
	expect_printed("/no/such/file.py", 1, 1, NULL);
	lull_scratch_remove(&s);
}

static void only_files_of_source_are_shown(void **state)
{
	static const char *const names[] = { "key.pem", "passwd", "a.json" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		struct lull_scratch s = LULL_SCRATCH_INIT;
		struct lull_source_place place = { NULL, 1, NULL };
		const char *const folders[] = { "/", NULL };
		struct lull_str path = LULL_STR_INIT;
		struct lull_err err;

		assert_int_equal(lull_scratch_make(&s, names[i], &err), 0);
		write_file(s.file.at, "secret\n");
		place.file = s.file.at;
		assert_false(lull_source_find(&place, folders, &path));
		expect_printed(s.file.at, 1, 1, NULL);
		lull_str_release(&path);
		lull_scratch_remove(&s);
	}
}

/* A pipe would block, a folder cannot be read. */
static void what_is_no_file_is_none(void **state)
{
	struct lull_scratch s = LULL_SCRATCH_INIT;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_scratch_make(&s, "pipe.c", &err), 0);
	assert_int_equal(mkfifo(s.file.at, 0600), 0);
	expect_printed(s.file.at, 1, 1, NULL);
	lull_scratch_remove(&s);
	assert_int_equal(lull_scratch_make(&s, "folder.c", &err), 0);
	assert_int_equal(mkdir(s.file.at, 0700), 0);
	expect_printed(s.file.at, 1, 1, NULL);
	rmdir(s.file.at);
	lull_scratch_remove(&s);
}

static void a_moved_file_is_found_by_the_end_of_its_path(void **state)
{
	struct lull_scratch s = LULL_SCRATCH_INIT;
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;
	struct lull_source_place place = { "/elsewhere/project/train.py", 2, "step" };

	(void)state;
	assert_int_equal(lull_scratch_make(&s, "train.py", &err), 0);
	write_file(s.file.at, "def step():\n    pass\n");
	const char *const folders[] = { "", "/no/such/folder", s.folder.at, NULL };

	assert_true(lull_source_find(&place, folders, &path));
	assert_string_equal(path.at, s.file.at);
	place.word = "other";
	assert_false(lull_source_find(&place, folders, &path));
	assert_string_equal(lull_str_text(&path), "");
	place = (struct lull_source_place){ "/elsewhere/project/train.py", 3, "step" };
	assert_false(lull_source_find(&place, folders, &path));
	/* At its own path its name is enough: functions are renamed, and macros have others. */
	place = (struct lull_source_place){ s.file.at, 2, "other" };
	assert_true(lull_source_find(&place, folders, &path));
	place.file = NULL;
	assert_false(lull_source_find(&place, folders, &path));
	lull_str_release(&path);
	lull_scratch_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_is_marked_among_its_neighbours),
		cmocka_unit_test(only_files_of_source_are_shown),
		cmocka_unit_test(what_is_no_file_is_none),
		cmocka_unit_test(a_moved_file_is_found_by_the_end_of_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
