/*
 * cupti.def says what NVIDIA's headers say, wherever those are installed.
 */
#include "unit/unit.h"

#if defined(__has_include)
#if __has_include(<cupti_activity.h>) && __has_include(<cuda_runtime_api.h>)
#define HAS_CUPTI 1
#include <cuda_runtime_api.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#endif
#endif

#include "agent/cupti.def"
#include "base/types.h"

#ifdef HAS_CUPTI

static void expect(const char *what, size_t ours, size_t theirs)
{
	if (ours != theirs)
		fail_msg("%s: cupti.def says %zu, the headers say %zu", what, ours, theirs);
}

static void constants_have_the_values_of_the_headers(void **state)
{
	(void)state;
#define AS_CHECK(ours, value, theirs) expect(#theirs, value, (size_t)(theirs));
	LULL_CUPTI_VALUES(AS_CHECK)
#undef AS_CHECK
}

/* The record of each kind in this version of the headers; `S` is the name in cupti.def. */
#define THEIRS_kernel	  CUpti_ActivityKernel10
#define THEIRS_memcpy	  CUpti_ActivityMemcpy6
#define THEIRS_memcpy2	  CUpti_ActivityMemcpyPtoP4
#define THEIRS_memset	  CUpti_ActivityMemset4
#define THEIRS_sync	  CUpti_ActivitySynchronization2
#define THEIRS_graph	  CUpti_ActivityGraphTrace2
#define THEIRS_overhead	  CUpti_ActivityOverhead3
#define THEIRS_device	  CUpti_ActivityDevice5
#define THEIRS_memory	  CUpti_ActivityMemory4
#define THEIRS_context	  CUpti_ActivityContext3
#define THEIRS_stream	  CUpti_ActivityStream
#define THEIRS_um	  CUpti_ActivityUnifiedMemoryCounter3
#define THEIRS_jit	  CUpti_ActivityJit2
#define THEIRS_resource	  CUpti_ResourceData
#define THEIRS_module	  CUpti_ModuleResourceData
#define THEIRS_um_config  CUpti_ActivityUnifiedMemoryCounterConfig
#define THEIRS_subscriber CUpti_SubscriberParams
#define THEIRS_call	  CUpti_CallbackData

static void fields_lie_where_the_headers_put_them(void **state)
{
	(void)state;
#define AS_FIELD(S, type, ours, theirs, offset, since)                \
	expect(#S "." #theirs, offset, offsetof(THEIRS_##S, theirs)); \
	expect("size of " #S "." #theirs, sizeof(type), sizeof(((THEIRS_##S *)0)->theirs));
#define AS_FIELDS(name, theirs, bytes, fields) fields(AS_FIELD, name)
	LULL_CUPTI_RECORDS(AS_FIELDS)
#undef AS_FIELDS
#undef AS_FIELD
}

static void records_have_the_size_of_the_headers(void **state)
{
	(void)state;
#define AS_SIZE(name, theirs, bytes, fields) expect("size of " #theirs, bytes, sizeof(theirs));
	LULL_CUPTI_RECORDS(AS_SIZE)
#undef AS_SIZE
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_have_the_values_of_the_headers),
		cmocka_unit_test(fields_lie_where_the_headers_put_them),
		cmocka_unit_test(records_have_the_size_of_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	fprintf(stderr, "SKIPPED: NVIDIA's CUPTI headers are not installed\n");
	return 0;
}

#endif
