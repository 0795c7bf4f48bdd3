#include "unit/unit.h"

#include "report/peak.h"

static void devices_are_found_by_a_part_of_their_name(void **state)
{
	(void)state;
	assert_true(lull_peak_flops("NVIDIA A100-SXM4-80GB", LULL_PRECISION_HALF) == 312e12);
	assert_true(lull_peak_flops("NVIDIA A100-SXM4-80GB", LULL_PRECISION_FP8) == 0);
	assert_true(lull_peak_flops("NVIDIA H200", LULL_PRECISION_TF32) == 494e12);
	assert_true(lull_peak_flops("Simulated GPU", LULL_PRECISION_HALF) == 0);
	/* Other models whose name begins so, and parts or slower ones of the same name. */
	assert_true(lull_peak_flops("NVIDIA RTX A4000", LULL_PRECISION_HALF) == 0);
	assert_true(lull_peak_flops("NVIDIA GeForce RTX 4090 Laptop GPU", LULL_PRECISION_HALF) ==
		    0);
	assert_true(lull_peak_flops("NVIDIA A100-SXM4-80GB MIG 1g.10gb", LULL_PRECISION_HALF) == 0);
}

static void special_names_come_before_general_ones(void **state)
{
	static const char *const names[] = {
#define PEAK(name, fp64, fp32, tf32, half, fp8) name,
#include "report/peaks.def"
#undef PEAK
	};

	(void)state;
	/* A name that is part of a later one would hide that line. */
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		for (size_t k = i + 1; k < LULL_COUNT_OF(names); k++)
			assert_null(strstr(names[k], names[i]));
	assert_true(lull_peak_flops("NVIDIA H100 PCIe", LULL_PRECISION_HALF) == 756e12);
	assert_true(lull_peak_flops("NVIDIA H100 80GB HBM3", LULL_PRECISION_HALF) == 989e12);
	assert_true(lull_peak_flops("NVIDIA L40S", LULL_PRECISION_HALF) == 362e12);
	assert_true(lull_peak_flops("NVIDIA L4", LULL_PRECISION_HALF) == 121e12);
}

static void the_first_floating_point_input_says_the_precision(void **state)
{
	(void)state;
	assert_int_equal(lull_precision_of("[\"float\", \"c10::Half\"]"), LULL_PRECISION_FP32);
	assert_int_equal(lull_precision_of("[\"c10::BFloat16\", \"float\"]"), LULL_PRECISION_HALF);
	assert_int_equal(lull_precision_of("[\"\", \"long int\", \"double\"]"),
			 LULL_PRECISION_FP64);
	assert_int_equal(lull_precision_of("[\"c10::Float8_e4m3fn\"]"), LULL_PRECISION_FP8);
	assert_int_equal(lull_precision_of("[\"long int\", \"Scalar\"]"), LULL_N_PRECISIONS);
	assert_int_equal(lull_precision_of("[\"c10::complex<float>\"]"), LULL_N_PRECISIONS);
	assert_int_equal(lull_precision_of(""), LULL_N_PRECISIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_found_by_a_part_of_their_name),
		cmocka_unit_test(special_names_come_before_general_ones),
		cmocka_unit_test(the_first_floating_point_input_says_the_precision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
