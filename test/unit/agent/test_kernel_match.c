/*
 * Which launches are measured, by the names of their kernels as compilers make them.
 */
#include "unit/unit.h"

#include <string.h>

/* The agent is linked into a library of its own; this part of it needs nothing else. */
#include "agent/counters/kernel_match.c"

static struct lull_kwish wish;

static void add_filter(const char *name, bool is_regex)
{
	struct lull_kwish_filter *f = &wish.filters[wish.n_filters++];

	strcpy(f->name, name);
	f->is_regex = is_regex;
}

static void begin(void)
{
	memset(&wish, 0, sizeof(wish));
	memset(&match, 0, sizeof(match));
}

static void expect_name(const char *symbol, const char *plain, const char *base)
{
	char text[256];

	assert_string_equal(lull_kernel_plain_name(symbol, text, sizeof(text)), base);
	assert_string_equal(text, plain);
}

static void names_lose_templates_and_parameters(void **state)
{
	(void)state;
	expect_name("saxpy", "saxpy", "saxpy");
	expect_name("_Z11stream_copyPK6float4PS_m", "stream_copy", "stream_copy");
	expect_name("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_18GeluE",
		    "at::native::vectorized_elementwise_kernel", "vectorized_elementwise_kernel");
	expect_name("_ZL6hiddenv", "hidden", "hidden");
	expect_name("_ZNSt3__14sortEv", "std::__1::sort", "sort");
	expect_name("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
		    "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
		    "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT");
}

static void names_that_are_cut_off_or_lie_do_no_harm(void **state)
{
	char text[8];

	(void)state;
	expect_name("_Z", "_Z", "_Z");
	expect_name("_Z99short", "_Z99short", "_Z99short");
	expect_name("_ZN", "_ZN", "_ZN");
	expect_name("_Z99999999999999999999x", "_Z99999999999999999999x",
		    "_Z99999999999999999999x");
	lull_kernel_plain_name("_Z11stream_copyPK6float4PS_m", text, sizeof(text));
	assert_string_equal(text, "stream_");
}

static void a_plain_name_matches_whole_names_only(void **state)
{
	(void)state;
	begin();
	add_filter("copy", false);
	lull_kernel_match_init(&wish);
	assert_int_equal(lull_kernel_match("_ZN2at4copyIfEEvPT_"), 0);
	assert_int_equal(lull_kernel_match("copy"), 0);
	assert_int_equal(lull_kernel_match("_Z11stream_copyPK6float4PS_m"), -1);
	/* And again, from the cache. */
	assert_int_equal(lull_kernel_match("copy"), 0);
	assert_int_equal(lull_kernel_match("_Z11stream_copyPK6float4PS_m"), -1);
	begin();
	add_filter("at::copy", false);
	add_filter("_Z3addPf", false);
	lull_kernel_match_init(&wish);
	assert_int_equal(lull_kernel_match("_ZN2at4copyIfEEvPT_"), 0);
	assert_int_equal(lull_kernel_match("_Z3addPf"), 1);
	assert_int_equal(lull_kernel_match("_Z3addPi"), -1);
}

static void an_expression_matches_a_part_of_any_spelling(void **state)
{
	(void)state;
	begin();
	add_filter("attention|^relu$", true);
	lull_kernel_match_init(&wish);
	assert_int_equal(lull_kernel_match("_ZN5flash13flash_forwardI9attention3EEvv"), 0);
	assert_int_equal(lull_kernel_match("_Z4reluPf"), 0);
	assert_int_equal(lull_kernel_match("_Z5relu2Pf"), -1);
	regfree(&match.regexes[0]);
}

static void no_name_matches_all(void **state)
{
	(void)state;
	begin();
	add_filter("", false);
	lull_kernel_match_init(&wish);
	assert_int_equal(lull_kernel_match("anything"), 0);
}

static void kernels_that_talk_to_other_devices_are_known(void **state)
{
	(void)state;
	assert_true(lull_kernel_is_unsafe("_Z35ncclDevKernel_AllReduce_Sum_f32_RING4v"));
	assert_true(lull_kernel_is_unsafe("_ZN7nvshmem9put_blockEv"));
	assert_false(lull_kernel_is_unsafe("_Z11stream_copyPK6float4PS_m"));
}

static void ranges_match_by_name_and_domain(void **state)
{
	(void)state;
	begin();
	lull_kernel_match_init(&wish);
	assert_false(lull_kernel_match_range("step", 4, "", 0));
	wish.has_range = 1;
	strcpy(wish.range, "step");
	assert_true(lull_kernel_match_range("step", 4, "any", 3));
	assert_false(lull_kernel_match_range("steps", 5, "", 0));
	strcpy(wish.range_domain, "mine");
	assert_true(lull_kernel_match_range("step", 4, "mine", 4));
	assert_false(lull_kernel_match_range("step", 4, "", 0));
	wish.is_range_regex = 1;
	strcpy(wish.range, "^st.p [0-9]+");
	match.wish = NULL;
	lull_kernel_match_init(&wish);
	assert_true(lull_kernel_match_range("step 12", 7, "mine", 4));
	assert_false(lull_kernel_match_range("step x", 6, "mine", 4));
	regfree(&match.range);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lose_templates_and_parameters),
		cmocka_unit_test(names_that_are_cut_off_or_lie_do_no_harm),
		cmocka_unit_test(a_plain_name_matches_whole_names_only),
		cmocka_unit_test(an_expression_matches_a_part_of_any_spelling),
		cmocka_unit_test(no_name_matches_all),
		cmocka_unit_test(kernels_that_talk_to_other_devices_are_known),
		cmocka_unit_test(ranges_match_by_name_and_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
