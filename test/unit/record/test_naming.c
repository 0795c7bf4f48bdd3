#include "unit/unit.h"

#include <unistd.h>

#include "record/session/naming.h"

/* Each test runs in a folder of its own, so that "report1.lull" is free. */
static int enter_folder(void **state)
{
	char folder[] = "/tmp/lull-test-XXXXXX";

	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	*state = strdup(folder);
	return 0;
}

static int leave_folder(void **state)
{
	struct lull_str command = LULL_STR_INIT;
	int rc;

	lull_str_addf(&command, "rm -r %s", (char *)*state);
	rc = chdir("/") || system(command.at);
	lull_str_release(&command);
	free(*state);
	return rc;
}

static void touch(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fclose(f);
}

static void expect(const char *pattern, bool is_overwriting, const char *name)
{
	struct lull_naming naming = { .pattern = pattern,
				      .is_overwriting = is_overwriting,
				      .pid = 4711 };
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;

	assert_int_equal(lull_naming_format(&naming, &path, &err), LULL_OK);
	assert_string_equal(path.at, name);
	lull_str_release(&path);
}

static void expect_failure(const char *pattern, int code, const char *message)
{
	struct lull_naming naming = { .pattern = pattern, .pid = 4711 };
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;

	assert_int_equal(lull_naming_format(&naming, &path, &err), code);
	assert_string_equal(err.msg, message);
	lull_str_release(&path);
}

static void expect_of_rank(const struct lull_naming *naming, const char *name)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;

	assert_int_equal(lull_naming_format(naming, &path, &err), LULL_OK);
	assert_string_equal(path.at, name);
	lull_str_release(&path);
}

static void ranks_are_told_apart(void **state)
{
	struct lull_rank rank = { .rank = 12 }, none = { .rank = -1 };

	(void)state;
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .rank = &rank }, "a-rank12.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a.lull", .rank = &rank },
		       "a-rank12.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a.nsys-rep", .rank = &rank },
		       "a-rank12.lull");
	expect_of_rank(&(struct lull_naming){ .rank = &rank }, "report1-rank12.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "%%p", .rank = &rank }, "%p-rank12.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .rank = &rank, .n_restarts = 1 },
		       "a-rank12-restart1.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a-%p", .pid = 7, .rank = &rank },
		       "a-7.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .rank = &none }, "a.lull");
}

static void dumps_are_numbered(void **state)
{
	struct lull_rank rank = { .rank = 1 };

	(void)state;
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .number = 3 }, "a-3.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .number = 3, .rank = &rank },
		       "a-rank1-3.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a%n", .number = 3 }, "a1.lull");
	/* A report of an earlier run stays. */
	touch("a-3.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .number = 3 }, "a-4.lull");
	expect_of_rank(&(struct lull_naming){ .pattern = "a", .number = 3, .is_overwriting = true },
		       "a-3.lull");
}

static void the_default_counts_up_until_it_is_free(void **state)
{
	(void)state;
	expect(NULL, false, "report1.lull");
	touch("report1.lull");
	touch("report2.lull");
	expect(NULL, false, "report3.lull");
	expect(NULL, true, "report3.lull");
}

static void patterns_expand_and_get_the_suffix_once(void **state)
{
	char host[256] = "", want[300];

	(void)state;
	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "a-4711-%s-100%%.lull", host);
	expect("a-%p-%h-100%%", false, want);
	expect("b.lull", false, "b.lull");
	expect("c.nsys-rep", false, "c.lull");
	expect("d.ncu-rep", false, "d.lull");
	setenv("LULL_TEST_RANK", "7", 1);
	expect("run/%q{LULL_TEST_RANK}", false, "run/7.lull");
	touch("n1.lull");
	expect("n%n", false, "n2.lull");
}

static void a_taken_name_needs_force(void **state)
{
	(void)state;
	touch("x.lull");
	expect_failure("x", LULL_E_IO,
		       "x.lull exists already; remove it, or let %n in the name count up; "
		       "profile, launch, attach and kernel overwrite it with -f");
	expect("x", true, "x.lull");
}

static void bad_patterns_are_explained(void **state)
{
	(void)state;
	unsetenv("LULL_TEST_UNSET");
	expect_failure("r%q{LULL_TEST_UNSET}", LULL_E_USAGE,
		       "output name \"r%q{LULL_TEST_UNSET}\": environment variable "
		       "LULL_TEST_UNSET is not set");
	expect_failure("r%x", LULL_E_USAGE,
		       "output name \"r%x\": %x is not supported; use %p %h %n %q{VAR} or %%");
	expect_failure("r%q", LULL_E_USAGE,
		       "output name \"r%q\": %q needs a variable in braces, such as %q{HOSTNAME}");
	expect_failure("r%", LULL_E_USAGE,
		       "output name \"r%\": single % at the end; write %% for a percent sign");
	expect_failure("dir/", LULL_E_USAGE, "output name \"dir/\" names no file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_default_counts_up_until_it_is_free,
						enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(patterns_expand_and_get_the_suffix_once,
						enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(ranks_are_told_apart, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(dumps_are_numbered, enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(a_taken_name_needs_force, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(bad_patterns_are_explained, enter_folder,
						leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
