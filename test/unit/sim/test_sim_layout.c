/*
 * The simulated CUPTI looks like the real one: numbers of calls, sizes and fields of records are
 * compared with NVIDIA's headers, where they are installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/skip.h"

#if defined(__has_include) && __has_include(<cupti_activity.h>)
#include <cupti.h>

/* One file of the stand-in is the whole of what is tested. */
#include "../../../sim/cupti_record.c"

static void calls_have_the_same_number(void **state)
{
	(void)state;
#define CALL(cbid, name, params) assert_int_equal(cbid, CUPTI_DRIVER_TRACE_CBID_##name);
#include "../../../sim/calls.def"
#undef CALL
#define CALL(cbid, version, name, params) \
	assert_int_equal(cbid, CUPTI_RUNTIME_TRACE_CBID_##name##_v##version);
#include "../../../sim/runtime.def"
#undef CALL
}

static void kinds_have_the_same_number(void **state)
{
	(void)state;
	assert_int_equal(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
	assert_int_equal(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
	assert_int_equal(CUPTI_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
	assert_int_equal(CUPTI_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
	assert_int_equal(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	assert_int_equal(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
	assert_int_equal(CUPTI_STREAM, CUPTI_ACTIVITY_KIND_STREAM);
	assert_int_equal(CUPTI_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
	assert_int_equal(CUPTI_GRAPH, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

static void records_have_the_size_of_their_release(void **state)
{
	(void)state;
	setenv("LULL_SIM_CUPTI_VERSION", "11.8", 1);
	assert_int_equal(lull_cupti_record_bytes(CUPTI_KERNEL), sizeof(CUpti_ActivityKernel8));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_MEMCPY), sizeof(CUpti_ActivityMemcpy5));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_GRAPH), sizeof(CUpti_ActivityGraphTrace));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_SYNC),
			 sizeof(CUpti_ActivitySynchronization));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_DEVICE), sizeof(CUpti_ActivityDevice4));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_CONTEXT), sizeof(CUpti_ActivityContext));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_OVERHEAD), sizeof(CUpti_ActivityOverhead));
	setenv("LULL_SIM_CUPTI_VERSION", "12.0", 1);
	assert_int_equal(lull_cupti_record_bytes(CUPTI_KERNEL), sizeof(CUpti_ActivityKernel9));
	setenv("LULL_SIM_CUPTI_VERSION", "13.0", 1);
	assert_int_equal(lull_cupti_record_bytes(CUPTI_KERNEL), sizeof(CUpti_ActivityKernel10));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_MEMCPY), sizeof(CUpti_ActivityMemcpy6));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_MEMSET), sizeof(CUpti_ActivityMemset4));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_GRAPH), sizeof(CUpti_ActivityGraphTrace2));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_SYNC),
			 sizeof(CUpti_ActivitySynchronization2));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_OVERHEAD), sizeof(CUpti_ActivityOverhead3));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_DEVICE), sizeof(CUpti_ActivityDevice5));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_CONTEXT), sizeof(CUpti_ActivityContext3));
	assert_int_equal(lull_cupti_record_bytes(CUPTI_STREAM), sizeof(CUpti_ActivityStream));
}

/* A value of its own for each field, so that none can stand in another's place. */
static const struct sim_work work = {
	.correlation = 1,
	.context_id = 2,
	.stream_id = 3,
	.start_ns = 4,
	.end_ns = 5,
	.graph_id = 6,
	.graph_node_id = 7,
	.name = "kernel",
	.grid = { 8, 9, 10 },
	.block = { 11, 12, 13 },
	.shared_bytes = 14,
	.size_bytes = 15,
	.value = 16,
	.copy_kind = 17,
	.src_kind = 18,
	.dst_kind = 19,
	.is_async = true,
	.wait_kind = 20,
	.event_id = 21,
	.event_sync_id = 22,
	.result = 23,
};

static union {
	u8 bytes[CUPTI_MAX_RECORD_BYTES];
	CUpti_ActivityKernel10 kernel;
	CUpti_ActivityMemcpy6 copy;
	CUpti_ActivityMemset4 set;
	CUpti_ActivitySynchronization2 sync;
	CUpti_ActivityGraphTrace2 graph;
	CUpti_ActivityDevice5 device;
	CUpti_ActivityContext3 context;
	CUpti_ActivityStream stream;
	CUpti_ActivityOverhead3 overhead;
	CUpti_ActivityMemory4 memory;
	CUpti_ActivityUnifiedMemoryCounter3 um;
	CUpti_ActivityJit2 jit;
} record;

static void write_as(enum sim_kind kind, u32 record_kind)
{
	struct sim_work copy = work;

	copy.kind = kind;
	lull_cupti_write_work(record.bytes, &copy, record_kind);
	assert_int_equal(record.kernel.kind, record_kind);
}

static void kernels_have_the_same_fields(void **state)
{
	(void)state;
	write_as(SIM_KERNEL, CUPTI_CONCURRENT_KERNEL);
	assert_int_equal(record.kernel.correlationId, 1);
	assert_int_equal(record.kernel.contextId, 2);
	assert_int_equal(record.kernel.streamId, 3);
	assert_int_equal(record.kernel.start, 4);
	assert_int_equal(record.kernel.end, 5);
	assert_int_equal(record.kernel.completed, 5);
	assert_int_equal(record.kernel.graphId, 6);
	assert_int_equal(record.kernel.graphNodeId, 7);
	assert_string_equal(record.kernel.name, "kernel");
	assert_int_equal(record.kernel.gridZ, 10);
	assert_int_equal(record.kernel.blockX, 11);
	assert_int_equal(record.kernel.dynamicSharedMemory, 14);
	assert_int_equal(record.kernel.registersPerThread, 32);
	assert_int_equal(record.kernel.sharedMemoryExecuted, 14);
}

static void copies_and_sets_have_the_same_fields(void **state)
{
	(void)state;
	write_as(SIM_MEMCPY, CUPTI_MEMCPY);
	assert_int_equal(record.copy.correlationId, 1);
	assert_int_equal(record.copy.contextId, 2);
	assert_int_equal(record.copy.streamId, 3);
	assert_int_equal(record.copy.start, 4);
	assert_int_equal(record.copy.end, 5);
	assert_int_equal(record.copy.graphId, 6);
	assert_int_equal(record.copy.graphNodeId, 7);
	assert_int_equal(record.copy.bytes, 15);
	assert_int_equal(record.copy.copyKind, 17);
	assert_int_equal(record.copy.srcKind, 18);
	assert_int_equal(record.copy.dstKind, 19);
	assert_int_equal(record.copy.flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	write_as(SIM_MEMSET, CUPTI_MEMSET);
	assert_int_equal(record.set.correlationId, 1);
	assert_int_equal(record.set.streamId, 3);
	assert_int_equal(record.set.start, 4);
	assert_int_equal(record.set.graphNodeId, 7);
	assert_int_equal(record.set.bytes, 15);
	assert_int_equal(record.set.value, 16);
	assert_int_equal(record.set.memoryKind, 19);
}

static void waits_and_graphs_have_the_same_fields(void **state)
{
	(void)state;
	write_as(SIM_SYNC, CUPTI_SYNC);
	assert_int_equal(record.sync.type, 20);
	assert_int_equal(record.sync.correlationId, 1);
	assert_int_equal(record.sync.contextId, 2);
	assert_int_equal(record.sync.streamId, 3);
	assert_int_equal(record.sync.start, 4);
	assert_int_equal(record.sync.end, 5);
	assert_int_equal(record.sync.cudaEventId, 21);
	assert_int_equal(record.sync.cudaEventSyncId, 22);
	assert_int_equal(record.sync.returnValue, 23);
	write_as(SIM_GRAPH, CUPTI_GRAPH);
	assert_int_equal(record.graph.correlationId, 1);
	assert_int_equal(record.graph.contextId, 2);
	assert_int_equal(record.graph.streamId, 3);
	assert_int_equal(record.graph.start, 4);
	assert_int_equal(record.graph.end, 5);
	assert_int_equal(record.graph.graphId, 6);
}

static void objects_have_the_same_fields(void **state)
{
	struct sim_object object = { .context_id = 1, .null_stream_id = 7 };

	(void)state;
	lull_cupti_write_device(record.bytes);
	assert_string_equal(record.device.name, SIM_DEVICE_NAME);
	assert_int_equal(record.device.computeCapabilityMajor, SIM_DEVICE_MAJOR);
	assert_int_equal(record.device.numMultiprocessors, SIM_DEVICE_SMS);
	assert_int_equal(record.device.coreClockRate, SIM_DEVICE_CLOCK_KHZ);
	assert_memory_equal(&record.device.uuid, SIM_DEVICE_UUID, 16);
	lull_cupti_write_object(record.bytes, &object);
	assert_int_equal(record.context.kind, CUPTI_ACTIVITY_KIND_CONTEXT);
	assert_int_equal(record.context.contextId, 1);
	assert_int_equal(record.context.computeApiKind, CUPTI_ACTIVITY_COMPUTE_API_CUDA);
	assert_int_equal(record.context.nullStreamId, 7);
	object.stream_id = 13;
	lull_cupti_write_object(record.bytes, &object);
	assert_int_equal(record.stream.kind, CUPTI_ACTIVITY_KIND_STREAM);
	assert_int_equal(record.stream.streamId, 13);
	assert_int_equal(record.stream.flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
	lull_cupti_write_overhead(record.bytes, 7u << 16, 4, 5);
	assert_int_equal(record.overhead.overheadKind,
			 CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
	assert_int_equal(record.overhead.start, 4);
	assert_int_equal(record.overhead.end, 5);
}

static void write_event(enum sim_event_kind kind, size_t bytes)
{
	struct sim_event event = { .kind = kind,
				   .memory = SIM_MANAGED,
				   .context_id = 2,
				   .correlation = 1,
				   .address = 8,
				   .size_bytes = 15,
				   .start_ns = 4,
				   .end_ns = 5 };

	assert_int_equal(lull_cupti_write_event(record.bytes, &event), bytes);
}

static void memory_and_code_have_the_same_fields(void **state)
{
	(void)state;
	write_event(SIM_RELEASED, sizeof(record.memory));
	assert_int_equal(record.memory.kind, CUPTI_ACTIVITY_KIND_MEMORY2);
	assert_int_equal(record.memory.memoryOperationType,
			 CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
	assert_int_equal(record.memory.memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
	assert_int_equal(record.memory.correlationId, 1);
	assert_int_equal(record.memory.address, 8);
	assert_int_equal(record.memory.bytes, 15);
	assert_int_equal(record.memory.timestamp, 4);
	assert_int_equal(record.memory.contextId, 2);
	write_event(SIM_COMPILED, sizeof(record.jit));
	assert_int_equal(record.jit.kind, CUPTI_ACTIVITY_KIND_JIT);
	assert_int_equal(record.jit.jitOperationType, CUPTI_ACTIVITY_JIT_OPERATION_COMPILE);
	assert_int_equal(record.jit.start, 4);
	assert_int_equal(record.jit.end, 5);
	assert_int_equal(record.jit.correlationId, 1);
	assert_int_equal(record.jit.cacheSize, 15);
	write_event(SIM_MIGRATED, sizeof(record.um));
	assert_int_equal(record.um.kind, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
	assert_int_equal(record.um.counterKind,
			 CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD);
	assert_int_equal(record.um.value, 15);
	assert_int_equal(record.um.start, 4);
	assert_int_equal(record.um.end, 5);
	assert_int_equal(record.um.address, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_and_code_have_the_same_fields),
		cmocka_unit_test(calls_have_the_same_number),
		cmocka_unit_test(kinds_have_the_same_number),
		cmocka_unit_test(records_have_the_size_of_their_release),
		cmocka_unit_test(kernels_have_the_same_fields),
		cmocka_unit_test(copies_and_sets_have_the_same_fields),
		cmocka_unit_test(waits_and_graphs_have_the_same_fields),
		cmocka_unit_test(objects_have_the_same_fields),
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
