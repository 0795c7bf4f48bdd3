/*
 * decode_cuda - kernels, copies, memsets, graphs, synchronisations and CUDA calls.
 *
 * Times of the device are compared with those of the calls that asked for the work
 * (device_clock.h): work never begins before its call.
 */
#include "record/decode/decode_event.h"

#include <stdlib.h>

#include "record/decode/decode_cuda_int.h"
#include "record/decode/decode_kernel.h"
#include "record/decode/device_clock.h"
#include "symbol/demangle.h"

/* Values of cuda_sync.kind. */
enum { WAIT_STREAM = 3, WAIT_CONTEXT = 4 };

/* Work that was over before the recording began: CUPTI held it back from the time before. */
static bool is_old(const struct lull_recording *r, const struct lull_event *event, u64 dur_ticks)
{
	u64 end_ns = lull_clock_ns_of(r->clock, event->counter + dur_ticks);

	return end_ns < (r->axis ? lull_axis_since_ns(r->axis) : r->epoch_ns);
}

void lull_decode_launch(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_launch *e = (const void *)event;
	const struct lull_wire_shape *s = &e->shape;
	const char *mangled = lull_cuda_text(r, s->name);
	char *name;
	bool is_new;
	u32 *id;

	(void)task;
	(void)level;
	if (!r->writer)
		return;
	id = lull_map_add(&r->launches, e->hash, &is_new);
	if (!is_new)
		return;
	name = mangled ? lull_demangle(mangled) : NULL;
	*id = lull_writer_add_dim(
		r->writer, LULL_TABLE_launch,
		&(struct lull_launch_row){
			.name = lull_recording_text(r, name ? name : mangled),
			.mangled_name = name ? lull_recording_text(r, mangled) : 0,
			.grid_x = s->grid[0],
			.grid_y = s->grid[1],
			.grid_z = s->grid[2],
			.block_x = s->block[0],
			.block_y = s->block[1],
			.block_z = s->block[2],
			.cluster_x = s->cluster[0],
			.cluster_y = s->cluster[1],
			.cluster_z = s->cluster[2],
			.registers = s->registers,
			.static_shared_bytes = s->static_shared_bytes,
			.dynamic_shared_bytes = s->dynamic_shared_bytes,
			.shared_executed_bytes = s->shared_executed_bytes,
			.local_bytes = s->local_bytes,
		});
	free(name);
}

void lull_decode_kernel(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_kernel *e = (const void *)event;
	struct lull_kernel_row row;
	u32 *launch;

	(void)level;
	if (!r->writer || is_old(r, event, e->dur_ticks))
		return;
	launch = lull_map_find(&r->launches, e->launch);
	row = (struct lull_kernel_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lull_cuda_lane(r, task->process, &e->place),
		.launch = launch ? *launch : 0,
		.correlation = e->place.correlation,
		.graph_id = (u32)e->graph,
		.graph_node_id = e->graph_node,
		.process = lull_recording_process(r, task->process),
	};
	if (r->is_measuring)
		lull_profiled_kernel(r, task->process, row.correlation, row.dur_ns);
	lull_device_clock_add(r, &(struct lull_device_work){ .table = LULL_TABLE_kernel,
							     .process = task->process,
							     .correlation = row.correlation,
							     .lane = row.lane,
							     .dur_ns = row.dur_ns,
							     .row.kernel = row });
}

void lull_decode_memcpy(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_memcpy *e = (const void *)event;
	struct lull_memcpy_row row;

	(void)level;
	if (!r->writer || is_old(r, event, e->dur_ticks))
		return;
	row = (struct lull_memcpy_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lull_cuda_lane(r, task->process, &e->place),
		.size_bytes = e->size_bytes,
		.correlation = e->place.correlation,
		.copy_kind = (u8)event->a,
		.src_kind = (u8)(event->a >> 8),
		.dst_kind = (u8)(event->a >> 16),
		.flags = (u8)(event->a >> 24),
		.graph_id = e->graph,
		.graph_node_id = e->graph_node,
		.src_device_id = e->src_device,
		.dst_device_id = e->dst_device,
		.process = lull_recording_process(r, task->process),
	};
	lull_device_clock_add(r, &(struct lull_device_work){ .table = LULL_TABLE_memcpy,
							     .process = task->process,
							     .correlation = row.correlation,
							     .lane = row.lane,
							     .dur_ns = row.dur_ns,
							     .row.memcpy = row });
}

void lull_decode_memset(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_memset *e = (const void *)event;
	struct lull_memset_row row;

	(void)level;
	if (!r->writer || is_old(r, event, e->dur_ticks))
		return;
	row = (struct lull_memset_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lull_cuda_lane(r, task->process, &e->place),
		.size_bytes = e->size_bytes,
		.correlation = e->place.correlation,
		.value = event->a,
		.memory_kind = (u8)e->memory_kind,
		.graph_id = e->graph,
		.graph_node_id = e->graph_node,
		.process = lull_recording_process(r, task->process),
	};
	lull_device_clock_add(r, &(struct lull_device_work){ .table = LULL_TABLE_memset,
							     .process = task->process,
							     .correlation = row.correlation,
							     .lane = row.lane,
							     .dur_ns = row.dur_ns,
							     .row.memset = row });
}

void lull_decode_cuda_call(struct lull_recording *r, struct lull_task *task, u32 level,
			   const struct lull_event *event)
{
	const struct lull_wire_cuda_call *e = (const void *)event;
	struct lull_cuda_call_row row;
	u32 stack = lull_decode_take_stack(task, level, event->a);
	u64 line;

	if (!r->writer)
		return;
	if ((event->a & LULL_HAS_PYSTACK) && event->size_bytes >= sizeof(*e) + sizeof(line)) {
		memcpy(&line, e + 1, sizeof(line));
		stack = lull_decode_pystack_of(r, line);
	}
	row = (struct lull_cuda_call_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.name = lull_recording_name(r, e->name),
		.correlation = e->correlation,
		.ret = e->ret,
		.api = (u8)event->a,
		.stack = stack,
	};
	lull_device_clock_call(task->process, row.correlation, row.start_ns);
	lull_recording_add(r, LULL_TABLE_cuda_call, &row);
}

void lull_decode_cuda_sync(struct lull_recording *r, struct lull_task *task, u32 level,
			   const struct lull_event *event)
{
	const struct lull_wire_cuda_sync *e = (const void *)event;
	struct lull_cuda_sync_row row;

	(void)level;
	if (!r->writer || is_old(r, event, e->dur_ticks))
		return;
	row = (struct lull_cuda_sync_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_cuda_lane(r, task->process, &e->place),
		.kind = (u8)event->a,
		.correlation = e->place.correlation,
		.event_id = e->event == UINT32_MAX ? 0 : e->event,
		.event_sync_id = e->event_sync,
		.ret = e->ret,
		.process = lull_recording_process(r, task->process),
	};
	if (row.kind == WAIT_STREAM || row.kind == WAIT_CONTEXT)
		lull_device_clock_wait(task->process,
				       &(struct lull_device_wait){
					       .correlation = row.correlation,
					       .end_ns = row.start_ns + row.dur_ns,
					       .lane = row.kind == WAIT_STREAM ? row.lane : 0,
				       });
	lull_recording_add(r, LULL_TABLE_cuda_sync, &row);
}

void lull_decode_graph(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_graph *e = (const void *)event;
	struct lull_graph_row row;

	(void)level;
	if (!r->writer || is_old(r, event, e->dur_ticks))
		return;
	row = (struct lull_graph_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lull_cuda_lane(r, task->process, &e->place),
		.correlation = e->place.correlation,
		.graph_id = event->a,
		.process = lull_recording_process(r, task->process),
	};
	lull_device_clock_add(r, &(struct lull_device_work){ .table = LULL_TABLE_graph,
							     .process = task->process,
							     .correlation = row.correlation,
							     .lane = row.lane,
							     .dur_ns = row.dur_ns,
							     .row.graph = row });
}

void lull_decode_overhead(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_overhead *e = (const void *)event;
	struct lull_overhead_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_overhead_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.kind = event->a,
		.tid = (u32)e->tid,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_overhead, &row);
}

void lull_decode_cuda_memory(struct lull_recording *r, struct lull_task *task, u32 level,
			     const struct lull_event *event)
{
	const struct lull_wire_cuda_memory *e = (const void *)event;
	struct lull_cuda_memory_row row;

	(void)level;
	if (!r->writer || is_old(r, event, 0))
		return;
	row = (struct lull_cuda_memory_row){
		.start_ns = lull_decode_time(r, event),
		.device = lull_cuda_device(r, task->process, e->place.device),
		.operation = (u8)event->a,
		.memory_kind = (u8)(event->a >> 8),
		.address = e->address,
		.size_bytes = e->size_bytes,
		.correlation = e->place.correlation,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_cuda_memory, &row);
}
