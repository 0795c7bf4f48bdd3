/*
 * Compare every line of agent/nvtx/nvtx.def with NVIDIA's headers, where they are installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/skip.h"

#include "agent/nvtx/nvtx_abi.h"

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

static void structures_have_the_same_layout(void **state)
{
	(void)state;
#define AS_CHECK(S, V, type, ours, theirs, off)       \
	assert_int_equal(offsetof(V, theirs), (off)); \
	assert_int_equal(sizeof(((V *)0)->theirs), sizeof(((struct lull_nvtx_##S *)0)->ours));
#define AS_CHECKS(name, theirs, bytes, fields)     \
	assert_int_equal(sizeof(theirs), (bytes)); \
	fields(AS_CHECK, name, theirs)
	LULL_NVTX_STRUCTS(AS_CHECKS)
#undef AS_CHECKS
#undef AS_CHECK
}

static void constants_have_the_same_value(void **state)
{
	(void)state;
#define AS_CHECK(ours, value, theirs) assert_int_equal((int)LULL_NVTX_##ours, (int)(theirs));
	LULL_NVTX_VALUES(AS_CHECK)
#undef AS_CHECK
	assert_true(LULL_NVTX_ID_DYNAMIC == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
	assert_true(LULL_NVTX_ID_DYNAMIC == NVTX_COUNTER_ID_DYNAMIC_START);
	assert_true(LULL_NVTX_ID_DYNAMIC == NVTX_SCOPE_ID_DYNAMIC_START);
	assert_true(LULL_NVTX_ID_STATIC == NVTX_COUNTER_ID_STATIC_START);
	assert_true(LULL_NVTX_ID_STATIC == NVTX_SCOPE_ID_STATIC_START);
}

static void modules_have_the_same_number(void **state)
{
	(void)state;
#define AS_CHECK(id, name) assert_int_equal(id, NVTX_CB_MODULE_##name);
	LULL_NVTX_MODULES(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(id, name) assert_int_equal(id, NVTX_ETID_##name);
	LULL_NVTX_EXPORTS(AS_CHECK)
#undef AS_CHECK
}

static void functions_have_the_same_slot(void **state)
{
	(void)state;
#define AS_CHECK(slot, ours, theirs, ret, args) assert_int_equal(slot, NVTX_CBID_CORE_##theirs);
	LULL_NVTX_CORE(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(slot, ours, theirs, ret, args) assert_int_equal(slot, NVTX_CBID_CUDA_##theirs);
	LULL_NVTX_CUDA(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(slot, ours, theirs, ret, args) assert_int_equal(slot, NVTX_CBID_CUDART_##theirs);
	LULL_NVTX_CUDART(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(slot, ours, theirs, ret, args) assert_int_equal(slot, NVTX_CBID_CORE2_##theirs);
	LULL_NVTX_CORE2(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(slot, ours, theirs, ret, args) assert_int_equal(slot, NVTX3EXT_CBID_nvtx##theirs);
	LULL_NVTX_PAYLOAD(AS_CHECK)
	LULL_NVTX_COUNTERS(AS_CHECK)
#undef AS_CHECK
}

static void types_have_the_same_number_and_size(void **state)
{
	(void)state;
#define AS_CHECK(id, name, theirs, bytes) assert_int_equal(id, NVTX_PAYLOAD_ENTRY_TYPE_##theirs);
	LULL_NVTX_TYPES(AS_CHECK)
#undef AS_CHECK
#define AS_CHECK(id, name, theirs, bytes)                                               \
	if (id < NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE && id != LULL_NVTX_TYPE_char8) \
		assert_int_equal(bytes,                                                 \
				 NVTX_EXT_PAYLOAD_VERSIONED_ID(nvtxExtPayloadTypeInfo)[id].size);
	LULL_NVTX_TYPES(AS_CHECK)
#undef AS_CHECK
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_have_the_same_layout),
		cmocka_unit_test(constants_have_the_same_value),
		cmocka_unit_test(modules_have_the_same_number),
		cmocka_unit_test(functions_have_the_same_slot),
		cmocka_unit_test(types_have_the_same_number_and_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void layouts_are_those_of_the_headers(void **state)
{
	(void)state;
	test_skip("NVIDIA's NVTX headers are not installed (make CUDA_INCLUDE=FOLDER)");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(layouts_are_those_of_the_headers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
