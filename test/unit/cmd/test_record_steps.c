#include "unit/unit.h"

#include <string.h>

#include "text/opt.h"
#include "cmd/record/record_steps.h"

static int pytorch(const char *word, u32 *sources, struct lull_err *err)
{
	struct lull_vec words;
	int rc;

	lull_vec_init(&words, sizeof(char *));
	if (word)
		lull_opt_list_add(&words, word);
	*sources = LULL_SOURCE_CUDA;
	rc = lull_record_pytorch(&words, sources, err);
	lull_opt_list_release(&words);
	return rc;
}

static void hooks_are_on_unless_they_are_refused(void **state)
{
	struct lull_err err;
	u32 sources;

	(void)state;
	assert_int_equal(pytorch(NULL, &sources, &err), 0);
	assert_int_equal(sources, LULL_SOURCE_CUDA | LULL_SOURCE_TORCH);
	assert_int_equal(pytorch("none", &sources, &err), 0);
	assert_int_equal(sources, LULL_SOURCE_CUDA);
	assert_int_equal(pytorch("ops", &sources, &err), 0);
	assert_true(sources & LULL_SOURCE_TORCH_OPS);
	assert_true(sources & LULL_SOURCE_TORCH_MEMORY);
	assert_int_equal(pytorch("everything", &sources, &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "'everything'"));
}

static void steps_are_read_in_any_order(void **state)
{
	struct lull_schedule s;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_record_steps("repeat=1,active=3,skip=5,warmup=1,wait=2", &s, &err),
			 0);
	assert_int_equal(s.skip_first, 5);
	assert_int_equal(s.wait, 2);
	assert_int_equal(s.warmup, 1);
	assert_int_equal(s.active, 3);
	assert_int_equal(s.repeat, 1);
	assert_int_equal(lull_record_steps("wait=1", &s, &err), 0);
	assert_int_equal(s.active, 1);
	assert_int_equal(s.repeat, 0);
	assert_int_equal(lull_record_steps("skip_first=7,repeat=1", &s, &err), 0);
	assert_int_equal(s.skip_first, 7);
}

static void steps_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {
		"5",	   "active",   "active=",	 "active=x",
		"skip=-1", "skip=+1",  "active=0",	 "active=99999999999",
		"later=3", "active=2", "wait=1 active=2"
	};
	struct lull_schedule s;
	struct lull_err err;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(bad); i++) {
		assert_int_equal(lull_record_steps(bad[i], &s, &err), LULL_E_USAGE);
		assert_non_null(strstr(err.msg, "--steps"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks_are_on_unless_they_are_refused),
		cmocka_unit_test(steps_are_read_in_any_order),
		cmocka_unit_test(steps_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
