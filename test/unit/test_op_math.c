#include "unit/unit.h"

#include "model/op_math.h"

static void products_count_two_for_each_multiplication(void **state)
{
	(void)state;
	assert_true(lull_op_flops("aten::mm", "[[2, 3], [3, 4]]", "") == 48);
	assert_true(lull_op_flops("aten::addmm", "[[4], [2, 3], [3, 4], [], []]", "") == 48);
	assert_true(lull_op_flops("aten::bmm", "[[5, 2, 3], [5, 3, 4]]", "") == 240);
	assert_true(lull_op_flops("aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4]]", "") == 240);
	assert_true(lull_op_flops("aten::mul", "[[8, 8], [8, 8]]", "") == 64);
	assert_true(lull_op_flops("aten::add", "[[], []]", "") == 1);
}

static void convolutions_count_what_their_outputs_take(void **state)
{
	(void)state;
	/* 8 images of 3 x 32 x 32, 16 filters of 3 x 3, padded: outputs of 32 x 32. */
	assert_true(
		lull_op_flops("aten::conv2d", "[[8, 3, 32, 32], [16, 3, 3, 3], [16]]",
			      "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"1\"]") ==
		2.0 * 8 * 32 * 32 * 16 * 3 * 3 * 3);
	/* Every second one, not padded: 15 x 15. */
	assert_true(
		lull_op_flops("aten::conv2d", "[[8, 3, 32, 32], [16, 3, 3, 3], [16]]",
			      "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"1\"]") ==
		2.0 * 8 * 15 * 15 * 16 * 3 * 3 * 3);
	/* In groups: a filter sees a part of the channels. */
	assert_true(
		lull_op_flops("aten::conv2d", "[[1, 4, 8, 8], [4, 1, 3, 3], []]",
			      "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"4\"]") ==
		2.0 * 8 * 8 * 4 * 1 * 3 * 3);
	/* Without the inputs nobody knows. */
	assert_true(lull_op_flops("aten::conv2d", "[[8, 3, 32, 32], [16, 3, 3, 3], [16]]", "") ==
		    0);
}

static void what_is_not_known_counts_nothing(void **state)
{
	static const char *const shapes[] = { "",	    "[]",
					      "[[",	    "[[2, 3]]",
					      "[[2], [3]]", "[[[2, 3], [3]], [4]]",
					      "nonsense",   "[[1,1,1,1,1,1,1,1,1,1], [2, 2]]" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(shapes); i++)
		assert_true(lull_op_flops("aten::mm", shapes[i], "") == 0);
	assert_true(lull_op_flops("aten::softmax", "[[2, 3]]", "") == 0);
	assert_true(lull_op_flops("my::mm", "[[2, 3], [3, 4]]", "") == 0);
}

static void bytes_are_elements_times_their_size(void **state)
{
	(void)state;
	assert_int_equal(
		lull_op_input_bytes("[[2, 3], [3, 4], []]", "[\"float\", \"float\", \"Scalar\"]"),
		72);
	assert_int_equal(lull_op_input_bytes("[[10], [10]]", "[\"c10::Half\", \"long int\"]"), 100);
	assert_int_equal(lull_op_input_bytes("[[]]", "[\"double\"]"), 8);
	assert_int_equal(lull_op_input_bytes("[[[5], [6]], [2]]", "[\"TensorList\", \"float\"]"),
			 8);
	assert_int_equal(lull_op_input_bytes("[[0, 5]]", "[\"float\"]"), 0);
	assert_int_equal(lull_op_input_bytes("[[2, 3]]", ""), 0);
	assert_int_equal(lull_op_input_bytes("", "[\"float\"]"), 0);
	assert_int_equal(lull_op_input_bytes("[[99999999999, 99999999999]]", "[\"float\"]"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_count_two_for_each_multiplication),
		cmocka_unit_test(convolutions_count_what_their_outputs_take),
		cmocka_unit_test(what_is_not_known_counts_nothing),
		cmocka_unit_test(bytes_are_elements_times_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
