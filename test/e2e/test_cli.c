/*
 * The command line from outside: exit statuses, the one line of an error, and where it goes.
 */
#include "unit/unit.h"

#include <sys/wait.h>

#define LULL LULL_BUILD "/lull"

/* Runs the words after `lull` in a shell; returns the exit status, `text` gets all output. */
static int run(const char *words, char *text, size_t cap_bytes)
{
	char command[512];
	size_t n;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), LULL " %s", words);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, cap_bytes - 1, pipe);
	text[n] = '\0';
	while (fgetc(pipe) != EOF)
		continue;
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *words, int status, const char *text)
{
	char got[8192];

	assert_int_equal(run(words, got, sizeof(got)), status);
	assert_non_null(strstr(got, text));
}

static void help_and_version_succeed(void **state)
{
	(void)state;
	expect("--version", 0, "lull ");
	expect("-v", 0, "lull ");
	expect("--help", 0, "doctor");
	expect("help", 0, "doctor");
	expect("help doctor", 0, "\nOPTIONS\n");
	expect("doctor --help", 0, "--format=NAME");
	expect("doctor --json; true", 0, "\"state\":");
	expect("why --json x.lull 2>&1", 1, "x.lull");
	expect("profile --json true 2>&1", 2, "unknown option --json");
	expect("profile --help=cuda", 0, "--cuda-graph-trace");
}

static void usage_errors_exit_with_2_and_a_hint(void **state)
{
	(void)state;
	expect("", 2, "usage: lull COMMAND");
	expect("docter 2>&1", 2, "lull: unknown command docter; did you mean doctor?\n");
	expect("doctor --jsno 2>&1", 2,
	       "lull doctor: unknown option --jsno; did you mean --json?\n");
	expect("doctor x 2>&1", 2, "lull doctor: unexpected argument \"x\"\n");
	expect("help docter 2>&1", 2, "did you mean doctor?");
	expect("profile --duration 1e30 true 2>&1", 2, "1000000000 seconds at most");
	expect("profile --capture-range-end=repeat:x true 2>&1", 2, "'repeat:x' is not none");
	expect("profile --cudabacktrace=kernel:x true 2>&1", 2, "'kernel:x' is not none");
}

static void what_nsys_has_and_lull_has_not_is_refused_with_what_to_use(void **state)
{
	(void)state;
	expect("recipe cuda_gpu_kern_sum 2>&1", 2, "there is no command recipe; `lull stats");
	expect("export -t hdf r.lull 2>&1", 2, "there is no format hdf; parquet and sqlite");
	expect("export -t arrow r.lull 2>&1", 2, "there is no format arrow; parquet");
	expect("export -t papyrus r.lull 2>&1", 2, "`lull export --list`");
	expect("export -t parquetdir no.lull 2>&1", 1, "no.lull");
	expect("export no.lull 2>&1", 1, "no.lull");
}

static void an_answer_that_cannot_be_written_is_a_failure(void **state)
{
	(void)state;
	expect("help 2>&1 >/dev/full", 1, "writing standard output: No space left on device");
	expect("--version >/dev/full", 1, "");
}

static void errors_leave_standard_output_empty(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(run("doctor --jsno 2>/dev/null", text, sizeof(text)), 2);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_and_version_succeed),
		cmocka_unit_test(usage_errors_exit_with_2_and_a_hint),
		cmocka_unit_test(what_nsys_has_and_lull_has_not_is_refused_with_what_to_use),
		cmocka_unit_test(an_answer_that_cannot_be_written_is_a_failure),
		cmocka_unit_test(errors_leave_standard_output_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
