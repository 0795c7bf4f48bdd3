/*
 * Words of --trace: what each switches on, and which variables the program gets.
 */
#include "unit/unit.h"

#include <string.h>

#include "cmd/record/trace_words.h"
#include "text/opt.h"
#include "wire/wire.h"

/* The bits of a word, and in `env` its variables, separated by blanks. */
static u32 sources_of(const char *word, char *env, size_t room)
{
	struct lull_vec list;
	u32 sources = 0;

	lull_vec_init(&list, sizeof(char *));
	*env = '\0';
	assert_true(lull_trace_word(word, &sources, &list));
	for (size_t i = 0; i < list.n; i++) {
		strncat(env, ((char **)list.at)[i], room - strlen(env) - 1);
		strncat(env, " ", room - strlen(env) - 1);
	}
	lull_opt_list_release(&list);
	return sources;
}

static void without_the_option_four_words_count(void **state)
{
	(void)state;
	assert_int_equal(lull_trace_default(), LULL_SOURCE_CUDA | LULL_SOURCE_NVTX |
						       LULL_SOURCE_ANNOTATE | LULL_SOURCE_OSRT |
						       LULL_SOURCE_GIL | LULL_SOURCE_REQUEST);
}

static void verbose_is_the_word_and_more(void **state)
{
	char env[256];
	u32 plain = sources_of("nccl", env, sizeof(env));

	(void)state;
	assert_true(plain & LULL_SOURCE_NCCL);
	assert_false(plain & LULL_SOURCE_NCCL_STEPS);
	assert_int_equal(sources_of("nccl-verbose", env, sizeof(env)),
			 plain | LULL_SOURCE_NCCL_STEPS);
}

static void libraries_get_their_variables(void **state)
{
	char env[256];

	(void)state;
	assert_int_equal(sources_of("cublas", env, sizeof(env)),
			 LULL_SOURCE_CUDA | LULL_SOURCE_NVTX);
	assert_string_equal(env, "CUBLAS_NVTX_LEVEL=1 CUBLASLT_NVTX_LEVEL=1 ");
	assert_int_equal(sources_of("cusolver-verbose", env, sizeof(env)),
			 LULL_SOURCE_CUDA | LULL_SOURCE_NVTX);
	assert_string_equal(env, "CUSOLVERDN_NVTX_LEVEL=2 ");
	assert_int_equal(sources_of("none", env, sizeof(env)), 0);
	assert_string_equal(env, "");
}

static void other_words_are_refused_and_change_nothing(void **state)
{
	static const char *const words[] = { "", "cud", "cuda-verbose", "CUDA", "gil" };
	u32 sources = LULL_SOURCE_MPI;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(words); i++)
		assert_false(lull_trace_word(words[i], &sources, NULL));
	assert_int_equal(sources, LULL_SOURCE_MPI);
}

static void help_marks_the_default(void **state)
{
	(void)state;
	assert_non_null(strstr(lull_trace_help, ", python-gil*, mpi, nccl[-verbose], "));
	assert_null(strstr(lull_trace_help, "cuda-sw"));
	assert_non_null(strstr(lull_trace_choices, "none, cuda, nvtx, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_the_option_four_words_count),
		cmocka_unit_test(verbose_is_the_word_and_more),
		cmocka_unit_test(libraries_get_their_variables),
		cmocka_unit_test(other_words_are_refused_and_change_nothing),
		cmocka_unit_test(help_marks_the_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
