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

static void products_of_layers_count_like_those_inside_them(void **state)
{
	(void)state;
	assert_true(lull_op_flops("aten::linear", "[[2, 3], [4, 3], [4]]", "") == 48);
	assert_true(lull_op_flops("aten::linear", "[[5, 2, 3], [4, 3], []]", "") == 240);
	assert_true(lull_op_flops("aten::matmul", "[[2, 3], [3, 4]]", "") == 48);
	assert_true(lull_op_flops("aten::matmul", "[[5, 2, 3], [3, 4]]", "") == 240);
	/* Batches that one side has, and the other repeats. */
	assert_true(lull_op_flops("aten::matmul", "[[7, 1, 2, 3], [5, 3, 4]]", "") == 35 * 48);
	assert_true(lull_op_flops("aten::matmul", "[[3], [3]]", "") == 6);
	assert_true(lull_op_flops("aten::matmul", "[[2, 3], [3]]", "") == 12);
	assert_true(lull_op_flops("aten::matmul", "[[3]]", "") == 0);
}

#define QKV "[2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 32]"

static void attention_counts_its_products(void **state)
{
	const f64 scores = 2.0 * 2 * 8 * 128 * 256;

	(void)state;
	assert_true(lull_op_flops("aten::scaled_dot_product_attention", "[" QKV ", []]", "") ==
		    scores * (64 + 32));
	assert_true(lull_op_flops("aten::_scaled_dot_product_flash_attention", "[" QKV "]", "") ==
		    scores * (64 + 32));
	/* Lengths in front of heads. */
	assert_true(lull_op_flops("aten::_flash_attention_forward",
				  "[[2, 128, 8, 64], [2, 256, 8, 64], [2, 256, 8, 32]]",
				  "") == scores * (64 + 32));
	/* Scores again, and one product for each of four gradients. */
	assert_true(lull_op_flops("aten::_scaled_dot_product_flash_attention_backward",
				  "[[2, 8, 128, 32], " QKV ", [2, 8, 128, 32]]",
				  "") == scores * (3 * 64 + 2 * 32));
	/* Sequences of different lengths in one tensor: the lengths are not here. */
	assert_true(lull_op_flops("aten::_flash_attention_forward",
				  "[[300, 8, 64], [300, 8, 64], [300, 8, 64]]", "") == 0);
}

static void convolutions_are_known_by_all_their_names(void **state)
{
	static const char shapes[] = "[[8, 3, 32, 32], [16, 3, 3, 3], [16]]";
	static const char backward[] = "[[8, 16, 15, 15], [8, 3, 32, 32], [16, 3, 3, 3]]";
	const f64 forward = 2.0 * 8 * 15 * 15 * 16 * 3 * 3 * 3;

	(void)state;
	assert_true(lull_op_flops("aten::convolution", shapes,
				  "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", "
				  "\"False\", \"[0, 0]\", \"1\"]") == forward);
	/* cuDNN has padding in front of stride. */
	assert_true(lull_op_flops("aten::cudnn_convolution", shapes,
				  "[\"\", \"\", \"[0, 0]\", \"[2, 2]\", \"[1, 1]\", \"1\"]") ==
		    forward);
	assert_true(lull_op_flops("aten::conv1d", "[[8, 3, 32], [16, 3, 3], [16]]",
				  "[\"\", \"\", \"\", \"[1]\", \"[1]\", \"[1]\", \"1\"]") ==
		    2.0 * 8 * 32 * 16 * 3 * 3);
	/* Each gradient costs what the forward pass did. */
	assert_true(lull_op_flops("aten::convolution_backward", backward, "") == 2 * forward);
	assert_true(lull_op_flops("aten::convolution_backward", backward,
				  "[\"\", \"\", \"\", \"[16]\", \"[2, 2]\", \"[0, 0]\", "
				  "\"[1, 1]\", \"False\", \"[0, 0]\", \"1\", "
				  "\"[False, True, True]\"]") == forward);
	/* Transposed: a filter for each place of the input. */
	assert_true(lull_op_flops("aten::conv_transpose2d", "[[8, 16, 15, 15], [16, 3, 3, 3]]",
				  "") == forward);
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
		cmocka_unit_test(products_of_layers_count_like_those_inside_them),
		cmocka_unit_test(attention_counts_its_products),
		cmocka_unit_test(convolutions_are_known_by_all_their_names),
		cmocka_unit_test(what_is_not_known_counts_nothing),
		cmocka_unit_test(bytes_are_elements_times_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
