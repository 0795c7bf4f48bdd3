#include "unit/unit.h"

#include <unistd.h>

#include "doctor/doctor.h"
#include "record/session/locate.h"
#include "record/session/machine.h"
#include "record/session/record_progress.h"

static void every_check_has_a_name_of_its_own_and_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; lull_doctor_checks[i]; i++) {
		const struct lull_doctor_check *check = lull_doctor_checks[i];
		struct lull_doctor_finding f;

		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(check->name, lull_doctor_checks[k]->name);
		lull_doctor_run(check, &f);
		if (!f.reason.len)
			fail_msg("%s says nothing", check->name);
		if (f.state == LULL_DOCTOR_OK && f.fix.len)
			fail_msg("%s is ok but wants to be fixed", check->name);
		lull_doctor_release(&f);
	}
}

static void keep_fact(void *ctx, const char *key, const char *value)
{
	lull_str_addf(ctx, "%s=%s\n", key, value);
}

static void the_machine_tells_no_paths_and_no_environment(void **state)
{
	static const char *const keys[] = { "host.kernel=",  "host.arch=", "cpu.count=",
					    "memory.bytes=", "container=", "user.is_root=" };
	struct lull_str facts = LULL_STR_INIT;

	(void)state;
	lull_machine_read(keep_fact, &facts);
	for (size_t i = 0; i < LULL_COUNT_OF(keys); i++)
		assert_non_null(strstr(facts.at, keys[i]));
	assert_null(strstr(facts.at, "/home"));
	assert_null(strstr(facts.at, "PATH"));
	lull_str_release(&facts);
}

static void a_named_agent_is_taken_or_refused(void **state)
{
	char folder[] = "/tmp/lull-test-XXXXXX", file[64];
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	setenv("LULL_AGENT_PATH", folder, 1);
	snprintf(file, sizeof(file), "%s/" LULL_AGENT_NAME, folder);
	f = fopen(file, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(lull_locate_agent(&path, &err), LULL_OK);
	assert_string_equal(path.at, file);
	setenv("LULL_AGENT_PATH", file, 1);
	assert_int_equal(lull_locate_agent(&path, &err), LULL_OK);
	assert_string_equal(path.at, file);
	unlink(file);
	assert_int_equal(lull_locate_agent(&path, &err), LULL_E_NOT_FOUND);
	rmdir(folder);
	unsetenv("LULL_AGENT_PATH");
	lull_str_release(&path);
}

static void progress_is_silent_without_a_terminal(void **state)
{
	struct lull_progress_state counts = { 1, 2, 3, 0 };
	struct lull_progress p;

	(void)state;
	lull_progress_init(&p, true);
	p.begin_ns = 0;
	lull_progress_recording(&p, &counts);
	assert_false(p.is_drawn);
	lull_progress_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_check_has_a_name_of_its_own_and_a_reason),
		cmocka_unit_test(the_machine_tells_no_paths_and_no_environment),
		cmocka_unit_test(a_named_agent_is_taken_or_refused),
		cmocka_unit_test(progress_is_silent_without_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
