#include "unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/whole_file.h"

static char folder[] = "/tmp/lull-test-XXXXXX";
static char path[64], other[64];

static void put(const char *name, const char *text)
{
	FILE *to = fopen(name, "w");

	assert_non_null(to);
	fputs(text, to);
	fclose(to);
}

static void expect(const char *name, const char *text)
{
	struct lull_str found = LULL_STR_INIT;

	lull_file_read(name, &found);
	assert_string_equal(lull_str_text(&found), text);
	lull_str_release(&found);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/out", folder);
	snprintf(other, sizeof(other), "%s/out/mine.txt", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* Write `text` to the place and end it with `rc`. */
static int write_to(const struct lull_whole_file_rules *rules, const char *text, int rc,
		    struct lull_err *err)
{
	struct lull_whole_file place;

	if (lull_whole_file_begin(&place, path, rules, err))
		return err->code;
	put(place.part, text);
	assert_true(access(path, F_OK) != 0 || rules->is_overwriting);
	return lull_whole_file_end(&place, rc, err);
}

static void a_file_appears_whole_or_not_at_all(void **state)
{
	struct lull_whole_file_rules keep = { false, NULL }, replace = { true, NULL };
	struct lull_err err;

	(void)state;
	assert_int_equal(write_to(&keep, "half", LULL_E_IO, &err), LULL_E_IO);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(write_to(&keep, "one", 0, &err), 0);
	expect(path, "one");
	assert_int_equal(write_to(&keep, "two", 0, &err), LULL_E_IO);
	assert_non_null(strstr(err.msg, "--force-overwrite"));
	expect(path, "one");
	assert_int_equal(write_to(&replace, "half", LULL_E_IO, &err), LULL_E_IO);
	expect(path, "one");
	assert_int_equal(write_to(&replace, "two", 0, &err), 0);
	expect(path, "two");
	unlink(path);
}

static void what_came_in_between_is_kept(void **state)
{
	struct lull_whole_file_rules keep = { false, NULL };
	struct lull_whole_file place;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_whole_file_begin(&place, path, &keep, &err), 0);
	put(place.part, "ours");
	put(path, "theirs");
	assert_int_equal(lull_whole_file_end(&place, 0, &err), LULL_E_IO);
	expect(path, "theirs");
	unlink(path);
}

static void a_folder_with_files_of_others_is_not_replaced(void **state)
{
	struct lull_whole_file_rules rules = { true, ".ours" };
	struct lull_whole_file place;
	struct lull_err err;
	char member[128];

	(void)state;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(lull_whole_file_begin(&place, path, &rules, &err), 0);
		assert_int_equal(mkdir(place.part, 0777), 0);
		snprintf(member, sizeof(member), "%s/a.ours", place.part);
		put(member, round ? "new" : "old");
		assert_int_equal(lull_whole_file_end(&place, 0, &err), 0);
		snprintf(member, sizeof(member), "%s/a.ours", path);
		expect(member, round ? "new" : "old");
	}
	put(other, "precious");
	assert_int_equal(lull_whole_file_begin(&place, path, &rules, &err), LULL_E_IO);
	expect(other, "precious");
	unlink(other);
	unlink(member);
	rmdir(path);
}

static void a_failed_folder_leaves_nothing(void **state)
{
	struct lull_whole_file_rules rules = { false, ".ours" };
	struct lull_whole_file place;
	struct lull_err err;
	char member[128];

	(void)state;
	assert_int_equal(lull_whole_file_begin(&place, path, &rules, &err), 0);
	mkdir(place.part, 0777);
	snprintf(member, sizeof(member), "%s/a.ours", place.part);
	put(member, "half");
	assert_int_equal(lull_whole_file_end(&place, LULL_E_IO, &err), LULL_E_IO);
	/* teardown() finds the folder empty. */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_whole_or_not_at_all),
		cmocka_unit_test(what_came_in_between_is_kept),
		cmocka_unit_test(a_folder_with_files_of_others_is_not_replaced),
		cmocka_unit_test(a_failed_folder_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
