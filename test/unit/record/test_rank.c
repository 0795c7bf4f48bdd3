/*
 * Ranks from environments, and lists of ranks.
 */
#include "unit/unit.h"

#include "record/session/job_rank.h"
#include "wire/rank.h"

/* An environment: NAME=VALUE each, NULL at the end. */
static const char *find(void *ctx, const char *name)
{
	size_t n = strlen(name);

	for (const char **v = ctx; *v; v++)
		if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
			return *v + n + 1;
	return NULL;
}

static void expect(const char **env, const char *launcher, i64 rank, i64 local_rank, i64 n_ranks)
{
	struct lull_rank r = lull_rank_read(find, env);

	assert_int_equal(r.rank, rank);
	assert_int_equal(r.local_rank, local_rank);
	assert_int_equal(r.n_ranks, n_ranks);
	if (launcher)
		assert_string_equal(r.launcher, launcher);
	else
		assert_null(r.launcher);
}

static void variables_of_launchers_are_read(void **state)
{
	(void)state;
	expect((const char *[]){ "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4", NULL }, "torchrun", 3, 1,
	       4);
	expect((const char *[]){ "OMPI_COMM_WORLD_RANK=0", NULL }, "openmpi", 0, -1, -1);
	expect((const char *[]){ "PMI_RANK=2", "PMI_SIZE=4", "SLURM_PROCID=2", NULL }, "hydra", 2,
	       -1, 4);
	expect((const char *[]){ "JOB_COMPLETION_INDEX=7", NULL }, "kubernetes", 7, -1, -1);
}

static void what_is_no_rank_is_none(void **state)
{
	(void)state;
	expect((const char *[]){ NULL }, NULL, -1, -1, -1);
	expect((const char *[]){ "RANK=3", NULL }, NULL, -1, -1, -1);
	expect((const char *[]){ "RANK=3", "WORLD_SIZE=0", NULL }, NULL, -1, -1, -1);
	expect((const char *[]){ "RANK=-1", "WORLD_SIZE=2", NULL }, NULL, -1, -1, -1);
	expect((const char *[]){ "RANK=", "WORLD_SIZE=2", NULL }, NULL, -1, -1, -1);
	expect((const char *[]){ "PMI_RANK=99999999999999999999", NULL }, NULL, -1, -1, -1);
	/* The nearer launcher says nothing that makes sense: the next is asked. */
	expect((const char *[]){ "RANK=x", "WORLD_SIZE=2", "PMIX_RANK=1", NULL }, "pmix", 1, -1,
	       -1);
}

static void lists_name_ranks(void **state)
{
	(void)state;
	assert_true(lull_ranks_has("all", 17, -1));
	assert_true(lull_ranks_has("0,8,16-23", 0, 32));
	assert_true(lull_ranks_has("0,8,16-23", 16, 32));
	assert_true(lull_ranks_has("0,8,16-23", 23, 32));
	assert_false(lull_ranks_has("0,8,16-23", 9, 32));
	assert_false(lull_ranks_has("0,8,16-23", 24, 32));
	assert_false(lull_ranks_has("", 0, 1));
	assert_false(lull_ranks_has("a,1", 1, 2));
	for (i64 rank = 0; rank < 12; rank++)
		assert_int_equal(lull_ranks_has("stage-heads:3", rank, 12), rank % 4 == 0);
	/* More stages than ranks, or a size that nobody tells: rather too much than nothing. */
	assert_true(lull_ranks_has("stage-heads:8", 1, 2));
	assert_true(lull_ranks_has("stage-heads:8", 1, -1));
}

static void expect_list(const char *text, char **argv, const char *list)
{
	struct lull_str to = LULL_STR_INIT;
	struct lull_err err;

	assert_int_equal(lull_job_ranks(text, argv, &to, &err), list ? 0 : LULL_E_USAGE);
	assert_string_equal(lull_str_text(&to), list ? list : "");
	lull_str_release(&to);
}

static void lists_are_checked(void **state)
{
	char *none[] = { "./app", NULL };
	char *two[] = { "./app", "--pp-size", "2", NULL };
	char *four[] = { "./app", "--pipeline-parallel-size=4", NULL };
	char *bad[] = { "./app", "--pp-size", NULL };

	(void)state;
	unsetenv("PP_SIZE");
	unsetenv("PIPELINE_PARALLEL_SIZE");
	expect_list("0,8,16-23", none, "0,8,16-23");
	expect_list("all", none, "all");
	expect_list("", none, NULL);
	expect_list("1-", none, NULL);
	expect_list("5-4", none, NULL);
	expect_list("1,2,", none, NULL);
	expect_list("stage-heads", none, NULL);
	expect_list("stage-heads", bad, NULL);
	expect_list("stage-heads:0", none, NULL);
	expect_list("stage-heads:x", none, NULL);
	expect_list("stage-headsx", none, NULL);
	expect_list("stage-heads:16", two, "stage-heads:16");
	expect_list("stage-heads", two, "stage-heads:2");
	expect_list("stage-heads", four, "stage-heads:4");
	setenv("PP_SIZE", "8", 1);
	expect_list("stage-heads", none, "stage-heads:8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_of_launchers_are_read),
		cmocka_unit_test(what_is_no_rank_is_none),
		cmocka_unit_test(lists_name_ranks),
		cmocka_unit_test(lists_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
