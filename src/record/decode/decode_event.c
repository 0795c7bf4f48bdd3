#include "record/decode/decode_event.h"

/* Smallest size of each event, by its struct; checked once here so that no decoder has to. */
static const u16 min_bytes[] = {
	[LULL_EVENT_pyframe] = sizeof(struct lull_wire_pyframe),
	[LULL_EVENT_pystack] = sizeof(struct lull_wire_pystack),
	[LULL_EVENT_string] = sizeof(struct lull_wire_string),
	[LULL_EVENT_label] = sizeof(struct lull_wire_label),
	[LULL_EVENT_push] = sizeof(struct lull_wire_range),
	[LULL_EVENT_pop] = sizeof(struct lull_event),
	[LULL_EVENT_start] = sizeof(struct lull_wire_start),
	[LULL_EVENT_end] = sizeof(struct lull_wire_end),
	[LULL_EVENT_mark] = sizeof(struct lull_wire_range),
	[LULL_EVENT_oscall] = sizeof(struct lull_wire_oscall),
	[LULL_EVENT_stack] = sizeof(struct lull_wire_stack),
	[LULL_EVENT_gil_wait] = sizeof(struct lull_wire_gil_wait),
	[LULL_EVENT_sample] = sizeof(struct lull_wire_sample),
	[LULL_EVENT_thread_name] = sizeof(struct lull_wire_thread_name),
	[LULL_EVENT_module] = sizeof(struct lull_wire_module),
	[LULL_EVENT_step] = sizeof(struct lull_wire_step),
	[LULL_EVENT_category] = sizeof(struct lull_wire_category),
	[LULL_EVENT_schema] = sizeof(struct lull_wire_schema),
	[LULL_EVENT_child] = sizeof(struct lull_wire_child),
	[LULL_EVENT_device] = sizeof(struct lull_wire_device),
	[LULL_EVENT_launch] = sizeof(struct lull_wire_launch),
	[LULL_EVENT_kernel] = sizeof(struct lull_wire_kernel),
	[LULL_EVENT_memcpy] = sizeof(struct lull_wire_memcpy),
	[LULL_EVENT_memset] = sizeof(struct lull_wire_memset),
	[LULL_EVENT_cuda_call] = sizeof(struct lull_wire_cuda_call),
	[LULL_EVENT_cuda_sync] = sizeof(struct lull_wire_cuda_sync),
	[LULL_EVENT_graph] = sizeof(struct lull_wire_graph),
	[LULL_EVENT_overhead] = sizeof(struct lull_wire_overhead),
	[LULL_EVENT_cuda_memory] = sizeof(struct lull_wire_cuda_memory),
	[LULL_EVENT_um_event] = sizeof(struct lull_wire_um_event),
	[LULL_EVENT_cuda_module] = sizeof(struct lull_wire_cuda_module),
	[LULL_EVENT_cuda_context] = sizeof(struct lull_wire_cuda_context),
	[LULL_EVENT_cuda_stream] = sizeof(struct lull_wire_cuda_stream),
	[LULL_EVENT_cuda_name] = sizeof(struct lull_wire_cuda_name),
	[LULL_EVENT_lib_call] = sizeof(struct lull_wire_lib_call),
	[LULL_EVENT_mpi_call] = sizeof(struct lull_wire_mpi_call),
	[LULL_EVENT_collective] = sizeof(struct lull_wire_collective),
	[LULL_EVENT_profiled] = sizeof(struct lull_wire_profiled),
	[LULL_EVENT_kmetric] = sizeof(struct lull_wire_kmetric),
	[LULL_EVENT_pcsample] = sizeof(struct lull_wire_pcsample),
	[LULL_EVENT_op_label] = sizeof(struct lull_wire_op_label),
	[LULL_EVENT_op] = sizeof(struct lull_wire_op),
	[LULL_EVENT_alloc] = sizeof(struct lull_wire_alloc),
};

#define EVENT(id, name, doc) [id] = lull_decode_##name,
static lull_decode_fn *const decoders[] = {
#include "wire/wire.def"
};
#undef EVENT
_Static_assert(LULL_COUNT_OF(min_bytes) == LULL_COUNT_OF(decoders), "an event has no size here");

bool lull_decode(struct lull_recording *r, struct lull_task *task, u32 level,
		 const struct lull_event *event)
{
	if (event->type >= LULL_COUNT_OF(decoders) || !decoders[event->type] ||
	    event->size_bytes < min_bytes[event->type])
		return false;
	decoders[event->type](r, task, level & 1, event);
	return true;
}

u64 lull_decode_time(const struct lull_recording *r, const struct lull_event *event)
{
	return lull_recording_ns(r, lull_clock_ns_of(r->clock, event->counter));
}
