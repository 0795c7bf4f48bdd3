/*
 * cuprof.def says what NVIDIA's headers say, and the real CUPTI plans every set from kmetrics.def
 * and sets.def; where those are installed. No device is needed. Not a unit test, because CUPTI
 * loads parts of itself in a way that sanitizers refuse.
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
#if __has_include(<cupti_range_profiler.h>) && __has_include(<cuda.h>)
#define HAS_CUPTI 1
#include <cuda.h>

#include <cupti_activity.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#endif
#endif

#include "counter/kplan.h"
#include "support/skip.h"
#include "wire/cuprof.h"

#define CUPTI_PATH "/usr/local/cuda/lib64/libcupti.so.13"

#ifdef HAS_CUPTI
static void expect(const char *what, size_t ours, size_t theirs)
{
	if (ours != theirs)
		fail_msg("%s: cuprof.def says %zu, the headers say %zu", what, ours, theirs);
}
#endif

static void structures_are_those_of_the_headers(void **state)
{
	(void)state;
#ifdef HAS_CUPTI
#define PROF_STRUCT(name, theirs, last, our_last, fields)                      \
	expect(#theirs, LULL_PROF_BYTES_##name,                                \
	       offsetof(theirs, last) + sizeof(((theirs *)0)->last));          \
	expect(#theirs "." #last, offsetof(struct lull_prof_##name, our_last), \
	       offsetof(theirs, last));
#include "wire/cuprof.def"
#undef PROF_STRUCT
#define PC_STRUCT(name, theirs, last, our_last, fields)                      \
	expect(#theirs, LULL_PC_BYTES_##name,                                \
	       offsetof(theirs, last) + sizeof(((theirs *)0)->last));        \
	expect(#theirs "." #last, offsetof(struct lull_pc_##name, our_last), \
	       offsetof(theirs, last));
#include "wire/cuprof.def"
#undef PC_STRUCT
	expect("pcs", offsetof(struct lull_pc_data, pcs), offsetof(CUpti_PCSamplingData, pPcData));
	expect("a pc", sizeof(struct lull_pc_pc), sizeof(CUpti_PCSamplingPCData));
	expect("data of pcs", sizeof(struct lull_pc_data), sizeof(CUpti_PCSamplingData));
	expect("a stall", sizeof(struct lull_pc_stall), sizeof(CUpti_PCSamplingStallReason));
	expect("an attribute", sizeof(struct lull_pc_attribute),
	       sizeof(CUpti_PCSamplingConfigurationInfo));
	expect("config", offsetof(struct lull_prof_set, max_ranges),
	       offsetof(CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass));
	expect("replay", offsetof(struct lull_prof_set, replay),
	       offsetof(CUpti_RangeProfiler_SetConfig_Params, replayMode));
#else
	test_skip("no CUPTI headers with the range profiler here (make CUDA_INCLUDE=FOLDER)");
#endif
}

static void constants_are_those_of_the_headers(void **state)
{
	(void)state;
#ifdef HAS_CUPTI
	expect("auto range", LULL_PROF_AUTO_RANGE, CUPTI_AutoRange);
	expect("user range", LULL_PROF_USER_RANGE, CUPTI_UserRange);
	expect("kernel replay", LULL_PROF_KERNEL_REPLAY, CUPTI_KernelReplay);
	expect("application replay", LULL_PROF_APPLICATION_REPLAY, CUPTI_ApplicationReplay);
	expect("range profiler", LULL_PROF_RANGE_PROFILER, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
	expect("privileges", LULL_PROF_E_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	expect("busy", LULL_PROF_E_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
	expect("MIG", LULL_PROF_E_MIG, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
	expect("serialized", LULL_PC_MODE_SERIALIZED,
	       CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
	expect("buffer", LULL_PC_BUFFER,
	       CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
#else
	test_skip("no CUPTI headers with the range profiler here (make CUDA_INCLUDE=FOLDER)");
#endif
}

/* Skip the test on a machine without CUPTI. */
static void need_cupti(void)
{
	if (access(CUPTI_PATH, R_OK) != 0)
		test_skip("no %s here", CUPTI_PATH);
}

/* The plan of a set on a chip. */
static void plan_set(const char *chip, const char *name, struct lull_kcost *cost)
{
	struct lull_kplan *plan;
	struct lull_kset set;
	struct lull_err err;

	need_cupti();
	lull_kset_init(&set);
	assert_int_equal(lull_kset_add_set(&set, name, &err), 0);
	assert_int_equal(lull_kplan_open(&plan, CUPTI_PATH, chip, &err), 0);
	assert_int_equal(lull_kplan_passes(plan, &set, cost, &err), 0);
	print_message("%s on %s: %u metrics in %u passes\n", name, chip, cost->n_metrics,
		      cost->n_passes);
	for (size_t i = 0; i < cost->missing.n; i++)
		print_message("  without %s\n", ((const char **)cost->missing.at)[i]);
	lull_kplan_close(plan);
	lull_kset_release(&set);
}

static void every_set_of_a_gh100_has_all_its_metrics_in_few_passes(void **state)
{
	static const struct {
		const char *set;
		u32 max_passes;
	} sets[] = { { "basic", 12 }, { "roofline", 18 }, { "full", 32 }, { "detailed", 32 } };
	struct lull_kcost cost;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(sets); i++) {
		plan_set("GH100", sets[i].set, &cost);
		assert_int_equal(cost.missing.n, 0);
		assert_in_range(cost.n_passes, 1, sets[i].max_passes);
		lull_vec_release(&cost.missing);
	}
}

/* Other chips lack some metrics and have others by another name; the basics are everywhere. */
static void basic_can_be_planned_on_every_kind_of_chip(void **state)
{
	static const char *const chips[] = { "GA100", "AD102", "GB100", "GB202" };
	struct lull_kcost cost;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(chips); i++) {
		plan_set(chips[i], "basic", &cost);
		assert_in_range(cost.missing.n, 0, 4);
		lull_vec_release(&cost.missing);
	}
}

static void a_library_that_is_none_is_refused(void **state)
{
	struct lull_kplan *plan;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_kplan_open(&plan, "/nowhere/libcupti.so", "GH100", &err),
			 LULL_E_NOT_FOUND);
	assert_int_equal(lull_kplan_open(&plan, "libc.so.6", "GH100", &err), LULL_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "12.6"));
}

static void a_chip_that_is_none_is_refused(void **state)
{
	struct lull_kplan *plan;
	struct lull_err err;

	(void)state;
	need_cupti();
	assert_int_equal(lull_kplan_open(&plan, CUPTI_PATH, "ZX81", &err), LULL_E_USAGE);
	assert_non_null(strstr(err.msg, "ZX81"));
	assert_non_null(strstr(err.msg, "GA100"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_are_those_of_the_headers),
		cmocka_unit_test(constants_are_those_of_the_headers),
		cmocka_unit_test(every_set_of_a_gh100_has_all_its_metrics_in_few_passes),
		cmocka_unit_test(basic_can_be_planned_on_every_kind_of_chip),
		cmocka_unit_test(a_library_that_is_none_is_refused),
		cmocka_unit_test(a_chip_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
