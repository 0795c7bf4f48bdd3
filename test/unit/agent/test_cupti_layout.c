/*
 * cupti.def says what NVIDIA's headers say, wherever those are installed.
 */
#include "unit/unit.h"

#if defined(__has_include)
#if __has_include(<cupti_activity.h>) && __has_include(<cuda_runtime_api.h>)
#define HAS_CUPTI 1
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#endif
#endif

#include "agent/cuda/cupti.def"
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

/*
 * The library itself, which needs no driver for it, walks records that were copied to a place of
 * ours: that is how another tool gets them (agent/cuda/cuda_share.c), and it shows that sizes are
 * right.
 */
static void the_library_walks_copied_records(void **state)
{
	enum { RUNTIME = 5, EXTERNAL = 39 };
	static const struct {
		u32 kind;
		size_t bytes;
	} records[] = {
		{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(THEIRS_kernel) },
		{ RUNTIME, sizeof(CUpti_ActivityAPI) },
		{ CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(THEIRS_memcpy) },
		{ EXTERNAL, sizeof(CUpti_ActivityExternalCorrelation) },
		{ CUPTI_ACTIVITY_KIND_MEMSET, sizeof(THEIRS_memset) },
		{ CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2) },
		{ CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(THEIRS_graph) },
		{ CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(THEIRS_overhead) },
		{ CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(THEIRS_memory) },
		{ CUPTI_ACTIVITY_KIND_JIT, sizeof(THEIRS_jit) },
		{ CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(THEIRS_kernel) },
	};
	static u8 buffer[8192];
	CUptiResult (*next)(u8 *, size_t, CUpti_Activity **) = NULL;
	void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	CUpti_Activity *record = NULL;
	size_t used = 0, off = 0;

	(void)state;
	if (!library)
		library = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&next = dlsym(library, "cuptiActivityGetNextRecord");
	if (!next)
		test_skip("libcupti.so.13 is not installed");
	for (size_t i = 0; i < LULL_COUNT_OF(records); used += records[i++].bytes)
		memcpy(buffer + used, &records[i].kind, sizeof(u32));
	for (size_t i = 0; i < LULL_COUNT_OF(records); off += records[i++].bytes) {
		assert_int_equal(next(buffer, used, &record), CUPTI_SUCCESS);
		assert_int_equal((u8 *)record - buffer, off);
	}
	assert_int_equal(next(buffer, used, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_have_the_values_of_the_headers),
		cmocka_unit_test(fields_lie_where_the_headers_put_them),
		cmocka_unit_test(records_have_the_size_of_the_headers),
		cmocka_unit_test(the_library_walks_copied_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void layouts_are_those_of_the_headers(void **state)
{
	(void)state;
	test_skip("NVIDIA's CUPTI headers are not installed (make CUDA_INCLUDE=FOLDER)");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(layouts_are_those_of_the_headers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
