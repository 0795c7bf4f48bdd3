/* Columns that take the type of their values. */
#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "query/frame.h"

static void add_text(struct lull_frame *f, const char *text)
{
	lull_frame_add_text(f, 0, text, strlen(text));
	lull_frame_end_row(f);
}

static void add_int(struct lull_frame *f, i64 value)
{
	lull_frame_add_int(f, 0, value);
	lull_frame_end_row(f);
}

static void add_real(struct lull_frame *f, f64 value)
{
	lull_frame_add_real(f, 0, value);
	lull_frame_end_row(f);
}

static void add_null(struct lull_frame *f)
{
	lull_frame_add_null(f, 0);
	lull_frame_end_row(f);
}

static bool is_present(const struct lull_frame *f, u64 row)
{
	const u8 *bits = f->cols[0].present.at;

	return !f->cols[0].n_nulls || (bits[row / 8] >> row % 8 & 1);
}

static const char *text_at(const struct lull_frame *f, u64 row)
{
	return lull_frame_text(&f->cols[0], ((const u32 *)f->cols[0].codes.at)[row]);
}

static void whole_numbers_become_real_where_one_is(void **state)
{
	struct lull_frame f;

	(void)state;
	lull_frame_init(&f, 1);
	add_int(&f, 7);
	add_null(&f);
	add_real(&f, 0.5);
	add_int(&f, -2);
	assert_int_equal(f.cols[0].kind, LULL_FRAME_REAL);
	assert_true(((const f64 *)f.cols[0].numbers.at)[0] == 7);
	assert_true(((const f64 *)f.cols[0].numbers.at)[2] == 0.5);
	assert_true(((const f64 *)f.cols[0].numbers.at)[3] == -2);
	assert_int_equal(f.cols[0].n_nulls, 1);
	lull_frame_release(&f);
}

static void everything_becomes_text_where_text_is(void **state)
{
	struct lull_frame f;

	(void)state;
	lull_frame_init(&f, 1);
	add_int(&f, 7);
	add_null(&f);
	add_real(&f, 0.5);
	add_text(&f, "gemm");
	add_int(&f, 8);
	assert_int_equal(f.cols[0].kind, LULL_FRAME_TEXT);
	assert_string_equal(text_at(&f, 0), "7.0");
	assert_string_equal(text_at(&f, 2), "0.5");
	assert_string_equal(text_at(&f, 3), "gemm");
	assert_string_equal(text_at(&f, 4), "8");
	assert_false(is_present(&f, 1));
	assert_true(is_present(&f, 4));
	lull_frame_release(&f);
}

/* The first null anywhere in a byte of bits, and nulls in front of the first value. */
static void nulls_are_where_they_were_put(void **state)
{
	(void)state;
	for (u64 first = 0; first < 20; first++) {
		for (u64 n = 1; n < 20; n += 6) {
			struct lull_frame f;

			lull_frame_init(&f, 1);
			for (u64 i = 0; i < 40; i++)
				i >= first &&i < first + n ? add_null(&f) : add_int(&f, (i64)i);
			assert_int_equal(f.cols[0].n_nulls, n);
			assert_int_equal(f.cols[0].numbers.n, 40);
			assert_int_equal(f.cols[0].present.n, 5);
			for (u64 i = 0; i < 40; i++) {
				bool is_null = i >= first && i < first + n;

				assert_int_equal(is_present(&f, i), !is_null);
				assert_int_equal(((const i64 *)f.cols[0].numbers.at)[i],
						 is_null ? 0 : i);
			}
			lull_frame_release(&f);
		}
	}
}

static void equal_texts_are_kept_once_and_are_valid(void **state)
{
	static const char same[] = "kernel";
	struct lull_frame f;

	(void)state;
	lull_frame_init(&f, 1);
	lull_frame_add_fixed(&f, 0, same, strlen(same));
	lull_frame_end_row(&f);
	lull_frame_add_fixed(&f, 0, same, strlen(same));
	lull_frame_end_row(&f);
	add_text(&f, "kernel");
	add_text(&f, "bad \xff byte");
	lull_frame_add_blob(&f, 0, "\0\xfe", 2);
	lull_frame_end_row(&f);
	assert_int_equal(lull_frame_n_texts(&f.cols[0]), 3);
	assert_string_equal(text_at(&f, 2), "kernel");
	assert_string_equal(text_at(&f, 3), "bad \xef\xbf\xbd byte");
	assert_string_equal(text_at(&f, 4), "00fe");
	lull_frame_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_become_real_where_one_is),
		cmocka_unit_test(everything_becomes_text_where_text_is),
		cmocka_unit_test(nulls_are_where_they_were_put),
		cmocka_unit_test(equal_texts_are_kept_once_and_are_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
