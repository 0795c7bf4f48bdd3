/*
 * pm.def says what NVIDIA's headers say, and the real CUPTI makes a plan from it; where those are
 * installed. No device is needed for either. Not a unit test, because CUPTI loads parts of itself
 * in a way that sanitizers refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The headers want C++'s <string> and use nothing of it; test/support/cuda has an empty one. */
#if defined(__has_include)
#if __has_include(<cupti_pmsampling.h>) && __has_include(<cuda.h>)
#define HAS_CUPTI 1
#include <cuda.h>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#endif
#endif

#include "record/gpu/pm.h"
#include "support/skip.h"

static void structures_have_the_sizes_of_the_headers(void **state)
{
	(void)state;
#ifdef HAS_CUPTI
	/* Theirs end with the last field, ours may be padded after it to a multiple of eight. */
#define PM_STRUCT(name, theirs, last, fields)                                         \
	{                                                                             \
		size_t size = offsetof(theirs, last) + sizeof(((theirs *)0)->last);   \
                                                                                      \
		if ((size + 7) / 8 * 8 != sizeof(struct lull_pm_##name))              \
			fail_msg("%s: pm.def says %zu, the headers say %zu", #theirs, \
				 sizeof(struct lull_pm_##name), size);                \
	}
#include "record/gpu/pm.def"
#undef PM_STRUCT
	assert_int_equal(offsetof(struct lull_pm_decode, has_overflow) + 1,
			 CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
	assert_int_equal(offsetof(struct lull_pm_set, interval_ns),
			 offsetof(CUpti_PmSampling_SetConfig_Params, samplingInterval));
	assert_int_equal(offsetof(struct lull_pm_evaluate, ix),
			 offsetof(CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex));
	assert_int_equal(offsetof(struct lull_pm_sample, end),
			 offsetof(CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp));
	assert_int_equal(CUPTI_PROFILER_TYPE_PM_SAMPLING, 1);
	assert_int_equal(CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL, 1);
	assert_int_equal(CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL, 1);
#else
	test_skip("no CUPTI headers with PM sampling here (make CUDA_INCLUDE=FOLDER)");
#endif
}

static bool has(const struct lull_pm_plan *plan, enum lull_metric_kind metric)
{
	for (u32 i = 0; i < plan->n; i++)
		if (plan->metrics[i] == metric)
			return true;
	return false;
}

static void one_pass_on_a_h200_takes_all_that_is_promised(void **state)
{
	static const enum lull_metric_kind promised[] = {
		LULL_METRIC_pm_sm_active,     LULL_METRIC_pm_sm_issue,
		LULL_METRIC_pm_tensor_active, LULL_METRIC_pm_occupancy,
		LULL_METRIC_pm_dram_read,     LULL_METRIC_pm_dram_write,
		LULL_METRIC_pm_l2_throughput, LULL_METRIC_pm_pcie_read,
		LULL_METRIC_pm_pcie_write,    LULL_METRIC_pm_nvlink_rx,
		LULL_METRIC_pm_nvlink_tx,
	};
	const char *path = "/usr/local/cuda/lib64/libcupti.so.13";
	struct lull_pm_plan plan;
	struct lull_err err;

	(void)state;
	if (access(path, R_OK) != 0)
		test_skip("no %s here", path);
	assert_int_equal(lull_pm_plan_chip(&plan, path, "GH100", &err), 0);
	for (size_t i = 0; i < LULL_COUNT_OF(promised); i++)
		assert_true(has(&plan, promised[i]));
	assert_true(plan.config_bytes > 0);
	lull_pm_plan_release(&plan);
	/* Older chips have fewer, by other names. */
	assert_int_equal(lull_pm_plan_chip(&plan, path, "GA100", &err), 0);
	assert_true(has(&plan, LULL_METRIC_pm_sm_active));
	lull_pm_plan_release(&plan);
	assert_int_equal(lull_pm_plan_chip(&plan, path, "ZX81", &err), LULL_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "ZX81"));
}

static void a_library_that_is_none_is_refused(void **state)
{
	struct lull_pm_plan plan;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_pm_plan_chip(&plan, "/nowhere/libcupti.so", "GH100", &err),
			 LULL_E_NOT_FOUND);
	assert_int_equal(lull_pm_plan_chip(&plan, "libc.so.6", "GH100", &err), LULL_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "12.6"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_have_the_sizes_of_the_headers),
		cmocka_unit_test(one_pass_on_a_h200_takes_all_that_is_promised),
		cmocka_unit_test(a_library_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
