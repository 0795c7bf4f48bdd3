#include "cupti_int.h"

#include <string.h>

/*
 * Layouts grow at the end only, so that one list of offsets serves all releases; what differs is
 * where a record ends. Offsets and sizes are those of CUPTI's headers.
 */

struct release {
	const char *name;
	u32 version;
	u16 kernel, copy, set, sync, graph, overhead, device, context, stream, memory, um, jit;
};

static const struct release releases[] = {
	{ "11.4", 15, 168, 80, 80, 40, 48, 40, 176, 16, 24, 112, 64, 0 },
	{ "11.8", 18, 200, 88, 88, 40, 48, 40, 176, 16, 24, 120, 64, 0 },
	{ "12.0", 19, 208, 88, 88, 40, 48, 40, 176, 16, 24, 120, 64, 64 },
	{ "12.8", 26, 208, 96, 88, 56, 56, 56, 184, 32, 24, 128, 104, 72 },
	{ "13.0.0", 130000, 216, 96, 88, 56, 56, 56, 184, 32, 24, 128, 104, 72 },
	{ "13.0", 130001, 216, 96, 88, 56, 56, 56, 184, 32, 24, 128, 104, 72 },
};

/* The one that was asked for, or the newest. */
static const struct release *release(void)
{
	const char *name = getenv("LULL_SIM_CUPTI_VERSION");

	for (size_t i = 0; name && i < LULL_COUNT_OF(releases); i++)
		if (strcmp(releases[i].name, name) == 0)
			return &releases[i];
	return &releases[LULL_COUNT_OF(releases) - 1];
}

u32 lull_cupti_version(void)
{
	return release()->version;
}

size_t lull_cupti_record_bytes(u32 kind)
{
	const struct release *r = release();

	switch (kind) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL:
		return r->kernel;
	case CUPTI_MEMCPY:
		return r->copy;
	case CUPTI_MEMSET:
		return r->set;
	case CUPTI_SYNC:
		return r->sync;
	case CUPTI_GRAPH:
		return r->graph;
	case CUPTI_OVERHEAD:
		return r->overhead;
	case CUPTI_DEVICE:
		return r->device;
	case CUPTI_CONTEXT:
		return r->context;
	case CUPTI_STREAM:
		return r->stream;
	case CUPTI_MEMORY:
		return r->memory;
	case CUPTI_UM:
		return r->um;
	case CUPTI_JIT:
		return r->jit;
	default:
		return 0;
	}
}

size_t lull_cupti_times_off(u32 kind)
{
	switch (kind) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL:
	case CUPTI_MEMCPY:
	case CUPTI_MEMSET:
	case CUPTI_UM:
	case CUPTI_JIT:
		return 16;
	case CUPTI_MEMORY:
		return 32; /* and no end */
	case CUPTI_SYNC:
	case CUPTI_GRAPH:
		return 8;
	case CUPTI_OVERHEAD:
		return 24;
	default:
		return 0;
	}
}

static void put32(u8 *at, size_t off, u32 value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void put64(u8 *at, size_t off, u64 value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void write_kernel(u8 *at, const struct sim_work *work)
{
	at[6] = 32; /* registers of a thread */
	put64(at, 32, work->end_ns);
	put32(at, 44, work->context_id);
	put32(at, 48, work->stream_id);
	for (size_t i = 0; i < 3; i++) {
		put32(at, 52 + 4 * i, work->grid[i]);
		put32(at, 64 + 4 * i, work->block[i]);
	}
	put32(at, 80, work->shared_bytes);
	put32(at, 92, work->correlation);
	put64(at, 96, work->correlation); /* number of the grid */
	put64(at, 104, (u64)(uintptr_t)work->name);
	put32(at, 140, work->shared_bytes);
	put64(at, 144, work->graph_node_id);
	put32(at, 156, work->graph_id);
	for (size_t i = 0; i < 3; i++)
		put32(at, 176 + 4 * i, 0); /* no clusters */
}

static void write_copy(u8 *at, const struct sim_work *work)
{
	at[4] = work->copy_kind;
	at[5] = work->src_kind;
	at[6] = work->dst_kind;
	at[7] = work->is_async;
	put64(at, 8, work->size_bytes);
	put32(at, 36, work->context_id);
	put32(at, 40, work->stream_id);
	put32(at, 44, work->correlation);
	put64(at, 64, work->graph_node_id);
	put32(at, 72, work->graph_id);
}

static void write_set(u8 *at, const struct sim_work *work)
{
	put32(at, 4, work->value);
	put64(at, 8, work->size_bytes);
	put32(at, 36, work->context_id);
	put32(at, 40, work->stream_id);
	put32(at, 44, work->correlation);
	at[50] = work->dst_kind;
	put64(at, 64, work->graph_node_id);
	put32(at, 72, work->graph_id);
}

static void write_sync(u8 *at, const struct sim_work *work)
{
	put32(at, 4, work->wait_kind);
	put32(at, 24, work->correlation);
	put32(at, 28, work->context_id);
	put32(at, 32, work->stream_id);
	put32(at, 36, work->event_id);
	put64(at, 40, work->event_sync_id);
	put32(at, 48, work->result);
}

static void write_graph(u8 *at, const struct sim_work *work)
{
	put32(at, 4, work->correlation);
	put32(at, 28, work->graph_id);
	put32(at, 32, work->context_id);
	put32(at, 36, work->stream_id);
	put32(at, 52, work->context_id);
}

size_t lull_cupti_write_work(u8 *at, const struct sim_work *work, u32 kind)
{
	size_t times_off = lull_cupti_times_off(kind);

	memset(at, 0, CUPTI_MAX_RECORD_BYTES);
	put32(at, 0, kind);
	put64(at, times_off, work->start_ns);
	put64(at, times_off + 8, work->end_ns);
	switch (work->kind) {
	case SIM_KERNEL:
		write_kernel(at, work);
		break;
	case SIM_MEMCPY:
		write_copy(at, work);
		break;
	case SIM_MEMSET:
		write_set(at, work);
		break;
	case SIM_SYNC:
		write_sync(at, work);
		break;
	case SIM_GRAPH:
		write_graph(at, work);
		break;
	}
	return lull_cupti_record_bytes(kind);
}

size_t lull_cupti_write_object(u8 *at, const struct sim_object *object)
{
	enum { DEFAULT = 1, NON_BLOCKING = 2, NULL_STREAM = 3, CUDA = 1 };
	bool is_null = object->stream_id == object->null_stream_id;

	memset(at, 0, CUPTI_MAX_RECORD_BYTES);
	put32(at, 4, object->context_id);
	if (!object->stream_id) {
		put32(at, 0, CUPTI_CONTEXT);
		put32(at, 12, CUDA | object->null_stream_id << 16); /* two u16 */
		return lull_cupti_record_bytes(CUPTI_CONTEXT);
	}
	put32(at, 0, CUPTI_STREAM);
	put32(at, 8, object->stream_id);
	put32(at, 12, (u32)object->priority);
	put32(at, 16, is_null ? NULL_STREAM : object->is_blocking ? DEFAULT : NON_BLOCKING);
	put32(at, 20, object->correlation);
	return lull_cupti_record_bytes(CUPTI_STREAM);
}

static size_t write_memory(u8 *at, const struct sim_event *event)
{
	enum { ALLOCATION = 1, RELEASE = 2 };

	put32(at, 0, CUPTI_MEMORY);
	put32(at, 4, event->kind == SIM_ALLOCATED ? ALLOCATION : RELEASE);
	put32(at, 8, event->memory);
	put32(at, 12, event->correlation);
	put64(at, 16, event->address);
	put64(at, 24, event->size_bytes);
	put64(at, 32, event->start_ns);
	put32(at, 56, event->context_id);
	return lull_cupti_record_bytes(CUPTI_MEMORY);
}

static size_t write_jit(u8 *at, const struct sim_event *event)
{
	enum { PTX_TO_CUBIN = 1, COMPILE = 3 };

	put32(at, 0, CUPTI_JIT);
	put32(at, 4, PTX_TO_CUBIN);
	put32(at, 8, COMPILE);
	put64(at, 16, event->start_ns);
	put64(at, 24, event->end_ns);
	put32(at, 32, event->correlation);
	put64(at, 48, event->size_bytes);
	return lull_cupti_record_bytes(CUPTI_JIT);
}

static size_t write_um(u8 *at, const struct sim_event *event)
{
	enum { HTOD = 1, CPU_FAULT = 3, BY_PREFETCH = 1, WRITE = 2 };
	bool is_fault = event->kind == SIM_FAULTED;

	put32(at, 0, CUPTI_UM);
	put32(at, 4, is_fault ? CPU_FAULT : HTOD);
	put64(at, 8, is_fault ? 1 : event->size_bytes);
	put64(at, 16, event->start_ns);
	put64(at, 24, is_fault ? 0 : event->end_ns);
	put64(at, 32, event->address);
	put32(at, 56, is_fault ? WRITE : BY_PREFETCH);
	return lull_cupti_record_bytes(CUPTI_UM);
}

size_t lull_cupti_write_event(u8 *at, const struct sim_event *event)
{
	memset(at, 0, CUPTI_MAX_RECORD_BYTES);
	switch (event->kind) {
	case SIM_ALLOCATED:
	case SIM_RELEASED:
		return write_memory(at, event);
	case SIM_COMPILED:
		return write_jit(at, event);
	case SIM_MIGRATED:
	case SIM_FAULTED:
		return write_um(at, event);
	default:
		return 0; /* modules are told by callbacks */
	}
}

size_t lull_cupti_write_device(u8 *at)
{
	memset(at, 0, CUPTI_MAX_RECORD_BYTES);
	put32(at, 0, CUPTI_DEVICE);
	put64(at, 8, 32000000); /* memory bandwidth, kB/s */
	put64(at, 16, SIM_DEVICE_MEMORY);
	put32(at, 24, 65536);
	put32(at, 28, SIM_DEVICE_L2_BYTES);
	put32(at, 32, 32);
	put32(at, 36, SIM_DEVICE_CLOCK_KHZ);
	put32(at, 40, 2);
	put32(at, 44, SIM_DEVICE_SMS);
	put32(at, 52, 64); /* warps of a multiprocessor */
	put32(at, 76, 1024);
	put32(at, 104, SIM_DEVICE_MAJOR);
	put32(at, 108, SIM_DEVICE_MINOR);
	memcpy(at + 120, SIM_DEVICE_UUID, 16);
	put64(at, 136, (u64)(uintptr_t)SIM_DEVICE_NAME);
	at[144] = 1; /* visible to CUDA */
	return lull_cupti_record_bytes(CUPTI_DEVICE);
}

size_t lull_cupti_write_overhead(u8 *at, u32 overhead_kind, u64 start_ns, u64 end_ns)
{
	memset(at, 0, CUPTI_MAX_RECORD_BYTES);
	put32(at, 0, CUPTI_OVERHEAD);
	put32(at, 4, overhead_kind);
	put64(at, 24, start_ns);
	put64(at, 32, end_ns);
	return lull_cupti_record_bytes(CUPTI_OVERHEAD);
}
