#include "unit/unit.h"

#include "text/shorten.h"

#define DOTS "\xe2\x80\xa6"

typedef void shortener(struct lull_str *to, const char *text, size_t columns);

static void expect(shortener *shorten, const char *text, size_t columns, const char *result)
{
	struct lull_str to = LULL_STR_INIT;

	shorten(&to, text, columns);
	assert_string_equal(lull_str_text(&to), result);
	lull_str_release(&to);
}

static void a_text_that_fits_stays_as_it_is(void **state)
{
	(void)state;
	expect(lull_shorten_end, "abcdefghij", 10, "abcdefghij");
	expect(lull_shorten_middle, "abcdefghij", 10, "abcdefghij");
	expect(lull_shorten_name, "void f<int>(int)", 16, "void f<int>(int)");
	expect(lull_shorten_name, "", 0, "");
}

static void the_end_or_the_middle_goes(void **state)
{
	(void)state;
	expect(lull_shorten_end, "abcdefghij", 7, "abcdef" DOTS);
	expect(lull_shorten_middle, "abcdefghij", 7, "abcd" DOTS "ij");
	expect(lull_shorten_middle, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 2, "\xc3\xa9" DOTS);
	expect(lull_shorten_middle, "abc", 0, "");
	expect(lull_shorten_name, "[CUDA memcpy Host-to-Device]", 16, "[CUDA memc" DOTS "vice]");
	expect(lull_shorten_name, "/srv/train/train.py:79", 16, "train.py:79");
	expect(lull_shorten_name, "/srv/train/train_shapes.py:79", 10, "train_" DOTS ":79");
	expect(lull_shorten_name, "<torch_package_0>/model/attention_module_long.py:123", 16,
	       "attention_" DOTS "y:123");
	expect(lull_shorten_name, "/data/run(1)/long_training_script.py:79", 16,
	       "long_train" DOTS "py:79");
	expect(lull_shorten_name, "/data/run(1)/train.py:79", 16, "train.py:79");
	expect(lull_shorten_name, "/srv/train/train.py:50 Block.forward", 30,
	       "train.py:50 Block.forward");
	expect(lull_shorten_name, "/srv/train/train.py:50 Block.forward", 16,
	       "train.py:50 Blo" DOTS);
}

static void a_kernel_loses_what_says_least_first(void **state)
{
	static const char name[] = "void at::native::vectorized_kernel<4, at::Functor<float, "
				   "std::array<char*, 2>>>(int, float)";

	(void)state;
	/* The return type, the parameters, then the arguments from the inside. */
	expect(lull_shorten_name, name, 86,
	       "at::native::vectorized_kernel<4, at::Functor<float, std::array<char*, 2>>>(int, "
	       "float)");
	expect(lull_shorten_name, name, 80,
	       "at::native::vectorized_kernel<4, at::Functor<float, std::array<char*, 2>>>");
	expect(lull_shorten_name, name, 70,
	       "at::native::vectorized_kernel<4, at::Functor<float, std::array<" DOTS ">>>");
	expect(lull_shorten_name, name, 50,
	       "at::native::vectorized_kernel<4, at::Functor<" DOTS ">>");
	expect(lull_shorten_name, name, 40, "at::native::vectorized_kernel<" DOTS ">");
	expect(lull_shorten_name, name, 24, DOTS "::vectorized_kernel<" DOTS ">");
	expect(lull_shorten_name, name, 12, DOTS "::vecto" DOTS "<" DOTS ">");
}

static void frames_of_python_lose_folders_and_then_their_end(void **state)
{
	static const char stack[] = "/srv/a/train.py(79): train; /srv/a/train.py(102): main";

	(void)state;
	expect(lull_shorten_name, stack, 60, stack);
	expect(lull_shorten_name, stack, 50, "train.py(79): train; train.py(102): main");
	expect(lull_shorten_name, stack, 24, "train.py(79): train; tr" DOTS);
	expect(lull_shorten_name, "train.py(79): f; b.py(2): g", 12, "train.py(79" DOTS);
	expect(lull_shorten_name, "a.py(1): x;;b/", 6, "a.py(" DOTS);
}

static void names_that_look_odd_do_no_harm(void **state)
{
	(void)state;
	expect(lull_shorten_name, "void (anonymous namespace)::gemm<float>(float*)", 40,
	       "(anonymous namespace)::gemm<float>");
	expect(lull_shorten_name, "a::operator<<(std::ostream&, int)", 20, "a::operator<<");
	expect(lull_shorten_name, "f()::{lambda()#1}::operator()() const", 30,
	       "f()::{lambda()#1}::operator()");
	expect(lull_shorten_name, "<<<<>(((", 3, "<<" DOTS);
	expect(lull_shorten_name, ")))>>>>((", 4, "))" DOTS "(");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_that_fits_stays_as_it_is),
		cmocka_unit_test(the_end_or_the_middle_goes),
		cmocka_unit_test(a_kernel_loses_what_says_least_first),
		cmocka_unit_test(frames_of_python_lose_folders_and_then_their_end),
		cmocka_unit_test(names_that_look_odd_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
