/*
 * Occupancy: shapes worked out by hand, and, where CUDA's own calculator is installed, thousands of
 * random ones against it.
 */
#include "unit/unit.h"

#include "counter/occupancy.h"
#include "unit/random.h"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAS_CALCULATOR 1
#endif

static struct lull_occupancy of(u32 capability, u32 n_threads, u32 n_registers, u32 shared_bytes)
{
	struct lull_launch_shape shape = { n_threads, n_registers, shared_bytes };
	const struct lull_chip *chip = lull_chip_find(capability);
	struct lull_occupancy result;

	assert_non_null(chip);
	lull_occupancy(chip, &shape, &result);
	return result;
}

static void each_resource_limits_in_turn(void **state)
{
	(void)state;
	/* H100 and H200: 64 warps, 32 blocks, 65,536 registers, 228 KiB. */
	assert_int_equal(of(90, 256, 32, 0).n_blocks, 8);
	assert_int_equal(of(90, 256, 32, 0).by, LULL_LIMIT_WARPS);
	assert_int_equal(of(90, 32, 16, 0).n_blocks, 32);
	assert_int_equal(of(90, 32, 16, 0).by, LULL_LIMIT_BLOCKS);
	assert_float_equal(of(90, 32, 16, 0).share, 0.5, 0);
	/* 128 registers: 4,096 a warp, 4 warps on each of 4 schedulers. */
	assert_int_equal(of(90, 256, 128, 0).n_warps, 16);
	assert_int_equal(of(90, 256, 128, 0).by, LULL_LIMIT_REGISTERS);
	/* 100 KiB and 1 of the system's: two fit into 228. */
	assert_int_equal(of(90, 256, 32, 100 * 1024).n_blocks, 2);
	assert_int_equal(of(90, 256, 32, 100 * 1024).by, LULL_LIMIT_SHARED);
}

static void what_cannot_run_has_no_blocks(void **state)
{
	(void)state;
	assert_int_equal(of(90, 1025, 16, 0).n_blocks, 0);
	assert_int_equal(of(90, 0, 16, 0).n_blocks, 0);
	assert_int_equal(of(90, 256, 256, 0).n_blocks, 0);
	assert_int_equal(of(90, 1024, 128, 0).n_blocks, 0);
	assert_int_equal(of(90, 256, 32, 228 * 1024).n_blocks, 0);
	assert_int_equal(of(90, 256, 32, 227 * 1024).n_blocks, 1);
}

static void unknown_chips_are_their_older_relatives(void **state)
{
	(void)state;
	assert_int_equal(lull_chip_find(90)->capability, 90);
	assert_int_equal(lull_chip_find(88)->capability, 87);
	assert_int_equal(lull_chip_find(129)->capability, 121);
	assert_null(lull_chip_find(35));
	assert_null(lull_chip_find(200));
}

#ifdef HAS_CALCULATOR
static cudaOccDeviceProp properties_of(const struct lull_chip *chip)
{
	return (cudaOccDeviceProp){
		.computeMajor = (int)chip->capability / 10,
		.computeMinor = (int)chip->capability % 10,
		.maxThreadsPerBlock = LULL_MAX_BLOCK_THREADS,
		.maxThreadsPerMultiprocessor = (int)chip->n_warps * LULL_WARP_THREADS,
		.regsPerBlock = LULL_CHIP_REGISTERS,
		.regsPerMultiprocessor = LULL_CHIP_REGISTERS,
		.warpSize = LULL_WARP_THREADS,
		.sharedMemPerBlock = 48 * 1024,
		.sharedMemPerMultiprocessor = chip->shared_bytes,
		.numSms = 100,
		.sharedMemPerBlockOptin = chip->block_shared_bytes,
		.reservedSharedMemPerBlock = chip->reserved_bytes,
	};
}

static void compare_shape(const struct lull_chip *chip, struct test_random *random)
{
	cudaOccDeviceProp properties = properties_of(chip);
	cudaOccDeviceState device = { .cacheConfig = CACHE_PREFER_NONE,
				      .carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED };
	u32 n_threads = 1 + (u32)(test_random_share(random) * 1024);
	u32 n_registers = 1 + (u32)(test_random_share(random) * 255);
	u32 shared = (u32)(test_random_share(random) * chip->block_shared_bytes);
	cudaOccFuncAttributes kernel = { .maxThreadsPerBlock = LULL_MAX_BLOCK_THREADS,
					 .numRegs = (int)n_registers,
					 .maxDynamicSharedSizeBytes = chip->block_shared_bytes,
					 .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN };
	cudaOccResult expected;
	struct lull_occupancy got;

	if (test_random_bits(random) % 2)
		shared /= 20;
	if (cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &properties, &kernel, &device,
						    (int)n_threads, shared) != CUDA_OCC_SUCCESS)
		return;
	got = of(chip->capability, n_threads, n_registers, shared);
	if ((int)got.n_blocks != expected.activeBlocksPerMultiprocessor)
		fail_msg("capability %u, %u threads, %u registers, %u bytes: %u blocks, CUDA says "
			 "%d",
			 chip->capability, n_threads, n_registers, shared, got.n_blocks,
			 expected.activeBlocksPerMultiprocessor);
}
#endif

static void random_shapes_are_as_cuda_calculates_them(void **state)
{
	(void)state;
#ifdef HAS_CALCULATOR
	struct test_random random = { 1 };

	for (const struct lull_chip *chip = lull_chips; chip->capability; chip++)
		for (int i = 0; i < 2000; i++)
			compare_shape(chip, &random);
#else
	test_skip("CUDA's occupancy calculator is not installed (make CUDA_INCLUDE=FOLDER)");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_resource_limits_in_turn),
		cmocka_unit_test(what_cannot_run_has_no_blocks),
		cmocka_unit_test(unknown_chips_are_their_older_relatives),
		cmocka_unit_test(random_shapes_are_as_cuda_calculates_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
