/*
 * Labels differ wherever the texts do: for made-up texts, and for all kernels of every recording in
 * test/data and test/corpus/data, at every width that a table may leave them.
 */
#include "unit/unit.h"

#include <glob.h>

#include "text/kernel_name.h"
#include "text/labels.h"
#include "text/term.h"
#include "trace/reader.h"

#define DOT " \xc2\xb7 "

#define ADD(type)                                                                             \
	"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<" type \
	">>(int)"
#define FILL(n, type)                                                                         \
	"void at::native::vectorized_elementwise_kernel<" n ", at::native::FillFunctor<" type \
	">>(int)"

static void expect(const char *const *texts, const char *const *labels, size_t n)
{
	struct lull_labels l;

	lull_labels_init(&l, true);
	lull_labels_add(&l, texts, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(lull_labels_get(&l, texts[i]), labels[i]);
	lull_labels_release(&l);
}

static void a_label_says_no_more_than_needed(void **state)
{
	static const char *const texts[] = { ADD("float"), FILL("4", "float") };
	static const char *const labels[] = { "elementwise" DOT "add", "elementwise" DOT "fill" };

	(void)state;
	expect(texts, labels, LULL_COUNT_OF(texts));
}

static void types_tell_apart_before_numbers(void **state)
{
	static const char *const texts[] = { ADD("float"), ADD("c10::BFloat16"), FILL("2", "long"),
					     FILL("4", "int"), FILL("8", "int") };
	static const char *const labels[] = {
		"elementwise" DOT "add f32",	  "elementwise" DOT "add bf16",
		"elementwise" DOT "fill i64",	  "elementwise" DOT "fill i32 <4>",
		"elementwise" DOT "fill i32 <8>",
	};

	(void)state;
	expect(texts, labels, LULL_COUNT_OF(texts));
}

static void words_of_a_family_tell_apart(void **state)
{
	static const char *const texts[] = { "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT",
					     "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT" };
	static const char *const labels[] = { "gemm 64\xc3\x97"
					      "8 bf16 TNT",
					      "gemm 64\xc3\x97"
					      "8 bf16 splitK" };

	(void)state;
	expect(texts, labels, LULL_COUNT_OF(texts));
}

static void what_cannot_be_told_gets_a_number(void **state)
{
	static const char *const texts[] = { "f(int)", "f(int*)", "f(int**)" };
	static const char *const labels[] = { "f", "f #2", "f #3" };

	(void)state;
	expect(texts, labels, LULL_COUNT_OF(texts));
}

static void a_text_that_comes_later_gets_another_label(void **state)
{
	const char *first = ADD("float"), *second = ADD("double");
	struct lull_labels l;

	(void)state;
	lull_labels_init(&l, true);
	lull_labels_add(&l, &first, 1);
	assert_string_equal(lull_labels_get(&l, first), "elementwise" DOT "add");
	assert_string_equal(lull_labels_get(&l, second), "elementwise" DOT "add #2");
	assert_string_equal(lull_labels_get(&l, first), "elementwise" DOT "add");
	lull_labels_release(&l);
}

static void other_texts_fit_and_differ_as_well(void **state)
{
	static const char *const texts[] = { "a/long/path/to/one/file.py",
					     "a/long/path/to/two/file.py", "short" };
	struct lull_labels l;

	(void)state;
	lull_labels_init(&l, false);
	lull_labels_add(&l, texts, LULL_COUNT_OF(texts));
	assert_int_equal(lull_labels_width(&l), strlen(texts[0]));
	lull_labels_fit(&l, 16);
	assert_string_equal(lull_labels_get(&l, texts[0]), "a/long/pat\xe2\x80\xa6le.py");
	assert_string_equal(lull_labels_get(&l, texts[1]), "a/long/p\xe2\x80\xa6"
							   "e.py #2");
	assert_string_equal(lull_labels_get(&l, texts[2]), "short");
	lull_labels_release(&l);
}

/* ---- recordings ---- */

static void all_differ(struct lull_labels *l, const char *const *texts, size_t n, size_t columns)
{
	struct lull_intern known;

	lull_intern_init(&known);
	for (size_t i = 0; i < n; i++) {
		const char *label = lull_labels_get(l, texts[i]);

		if (lull_term_columns(label) > columns)
			fail_msg("\"%s\" takes more than %zu columns", label, columns);
		if (lull_intern_add(&known, label, strlen(label)) != i)
			fail_msg("%zu columns: \"%s\" is the label of two kernels, one is %s",
				 columns, label, texts[i]);
	}
	lull_intern_release(&known);
}

/* The names of all kernels of a report, each once; borrowed from the reader. */
static const char **names_of(struct lull_reader *r, size_t *n_names)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	const char **names = calloc(n + 1, sizeof(*names));
	struct lull_intern known;

	lull_intern_init(&known);
	*n_names = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = lull_reader_string(r, launches[i].name, NULL);

		if (lull_intern_add(&known, name, strlen(name)) == *n_names)
			names[(*n_names)++] = name;
	}
	lull_intern_release(&known);
	return names;
}

static size_t check(const char *path)
{
	static const size_t widths[] = { 60, 40, 28, 16 };
	struct lull_reader *r;
	struct lull_err err;
	const char **names;
	size_t n;

	if (lull_reader_open(&r, path, &err))
		return 0;
	names = names_of(r, &n);
	for (size_t i = 0; i < LULL_COUNT_OF(widths); i++) {
		struct lull_labels l;

		lull_labels_init(&l, true);
		lull_labels_add(&l, names, n);
		all_differ(&l, names, n, LULL_KERNEL_SHORT_MAX + 5);
		lull_labels_fit(&l, widths[i]);
		all_differ(&l, names, n, widths[i]);
		lull_labels_release(&l);
	}
	free(names);
	lull_reader_close(r);
	return n;
}

static void kernels_of_every_recording_stay_different(void **state)
{
	static const char *const patterns[] = { "test/data/*/*.lull", "test/data/ranks/*/*.lull",
						"test/corpus/data/*.lull" };
	size_t n_names = 0, n_files = 0;

	(void)state;
	for (size_t p = 0; p < LULL_COUNT_OF(patterns); p++) {
		glob_t found;

		assert_int_equal(glob(patterns[p], 0, NULL, &found), 0);
		for (size_t i = 0; i < found.gl_pathc; i++, n_files++)
			n_names += check(found.gl_pathv[i]);
		globfree(&found);
	}
	assert_true(n_files > 100);
	assert_true(n_names > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_says_no_more_than_needed),
		cmocka_unit_test(types_tell_apart_before_numbers),
		cmocka_unit_test(words_of_a_family_tell_apart),
		cmocka_unit_test(what_cannot_be_told_gets_a_number),
		cmocka_unit_test(a_text_that_comes_later_gets_another_label),
		cmocka_unit_test(other_texts_fit_and_differ_as_well),
		cmocka_unit_test(kernels_of_every_recording_stay_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
