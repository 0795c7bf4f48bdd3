/*
 * decode_cuda - devices, kernels, copies, memsets, graphs, synchronisations and CUDA calls.
 *
 * Work of a device lies on a lane of its own for each (process, device, context, stream). CUPTI
 * numbers contexts and streams per process.
 */
#include "launch/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"

#define LANE_STREAM 2

/* Work that was over before the recording began: CUPTI held it back from the time before. */
static bool is_old(const struct lull_recording *r, const struct lull_event *event, u64 dur_ticks)
{
	return lull_clock_ns_of(r->clock, event->counter + dur_ticks) < r->epoch_ns;
}

static struct lull_gpu *gpu_of(struct lull_process *p, u32 device_id)
{
	struct lull_gpu *all = p->gpus.at, *gpu;

	for (size_t i = 0; i < p->gpus.n; i++)
		if (all[i].device_id == device_id)
			return &all[i];
	gpu = lull_vec_push(&p->gpus);
	gpu->device_id = device_id;
	return gpu;
}

void lull_decode_device(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_device *e = (const void *)event;
	size_t room = event->size_bytes - sizeof(*e);
	struct lull_gpu *gpu = gpu_of(task->process, e->device);

	(void)r;
	(void)level;
	gpu->capability = e->capability;
	gpu->n_sms = e->n_sms;
	gpu->l2_bytes = e->l2_bytes;
	gpu->memory_bytes = e->memory_bytes;
	gpu->clock_hz = e->clock_khz * 1000;
	gpu->bandwidth_bytes = e->bandwidth_kbytes * 1000;
	snprintf(gpu->name, sizeof(gpu->name), "%.*s", (int)(event->a < room ? event->a : room),
		 (const char *)(e + 1));
	for (size_t i = 0; i < sizeof(e->uuid); i++)
		snprintf(gpu->uuid + 2 * i, 3, "%02x", e->uuid[i]);
}

static struct lull_device_row device_row(struct lull_recording *r, struct lull_process *p,
					 const struct lull_gpu *gpu)
{
	return (struct lull_device_row){
		.process = lull_recording_process(r, p),
		.device_id = gpu->device_id,
		.name = lull_recording_text(r, gpu->name),
		.uuid = lull_recording_text(r, gpu->uuid),
		.capability = gpu->capability,
		.n_sms = gpu->n_sms,
		.memory_bytes = gpu->memory_bytes,
		.l2_bytes = gpu->l2_bytes,
		.clock_hz = gpu->clock_hz,
		.bandwidth_bytes = gpu->bandwidth_bytes,
		.is_simulated = strstr(gpu->name, "Simulated") != NULL,
	};
}

static u32 device_of(struct lull_recording *r, struct lull_process *p, u32 device_id)
{
	struct lull_gpu *gpu = gpu_of(p, device_id);

	if (!gpu->row) {
		struct lull_device_row row = device_row(r, p, gpu);

		gpu->row = lull_writer_add_dim(r->writer, LULL_TABLE_device, &row);
	}
	return gpu->row;
}

void lull_decode_devices(struct lull_recording *r, struct lull_process *p)
{
	const struct lull_gpu *all = p->gpus.at;

	for (size_t i = 0; i < p->gpus.n; i++) {
		struct lull_device_row row;

		if (!all[i].row)
			continue;
		row = device_row(r, p, &all[i]);
		lull_writer_set_dim(r->writer, LULL_TABLE_device, all[i].row, &row);
	}
}

/* A wait knows its context but not the device; another stream of that context does. */
static u32 device_of_context(const struct lull_process *p, u32 context_id)
{
	const struct lull_gpu_stream *all = p->streams.at;

	for (size_t i = 0; i < p->streams.n; i++)
		if (all[i].context_id == context_id)
			return all[i].device_id;
	return 0;
}

static u32 lane_of(struct lull_recording *r, struct lull_process *p,
		   const struct lull_wire_place *place)
{
	u32 device_id =
		place->device == UINT32_MAX ? device_of_context(p, place->context) : place->device;
	struct lull_gpu_stream *all = p->streams.at, *s;
	struct lull_lane_row row;
	char name[48];

	for (size_t i = p->streams.n; i-- > 0;)
		if (all[i].stream_id == place->stream && all[i].context_id == place->context &&
		    all[i].device_id == device_id)
			return all[i].lane;
	snprintf(name, sizeof(name), "stream %u", place->stream);
	row = (struct lull_lane_row){
		.kind = LANE_STREAM,
		.process = lull_recording_process(r, p),
		.name = lull_recording_text(r, name),
		.device = device_of(r, p, device_id),
		.context_id = place->context,
		.stream_id = place->stream,
	};
	s = lull_vec_push(&p->streams);
	s->device_id = device_id;
	s->context_id = place->context;
	s->stream_id = place->stream;
	s->lane = lull_writer_add_dim(r->writer, LULL_TABLE_lane, &row);
	return s->lane;
}

static const char *text_of(struct lull_recording *r, u64 hash)
{
	u32 *ix = lull_map_find(&r->texts, hash);

	return ix ? ((char **)r->text_list.at)[*ix - 1] : NULL;
}

void lull_decode_launch(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_launch *e = (const void *)event;
	const struct lull_wire_shape *s = &e->shape;
	const char *mangled = text_of(r, s->name);
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
		.lane = lane_of(r, task->process, &e->place),
		.launch = launch ? *launch : 0,
		.correlation = e->place.correlation,
		.graph_id = (u32)e->graph,
		.graph_node_id = e->graph_node,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_kernel, &row);
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
		.lane = lane_of(r, task->process, &e->place),
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
	lull_recording_add(r, LULL_TABLE_memcpy, &row);
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
		.lane = lane_of(r, task->process, &e->place),
		.size_bytes = e->size_bytes,
		.correlation = e->place.correlation,
		.value = event->a,
		.memory_kind = (u8)e->memory_kind,
		.graph_id = e->graph,
		.graph_node_id = e->graph_node,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_memset, &row);
}

void lull_decode_cuda_call(struct lull_recording *r, struct lull_task *task, u32 level,
			   const struct lull_event *event)
{
	const struct lull_wire_cuda_call *e = (const void *)event;
	struct lull_cuda_call_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_cuda_call_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.name = lull_recording_name(r, e->name),
		.correlation = event->a,
		.ret = e->ret,
		.api = (u8)e->api,
	};
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
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.lane = lane_of(r, task->process, &e->place),
		.kind = (u8)event->a,
		.correlation = e->place.correlation,
		.event_id = e->event == UINT32_MAX ? 0 : e->event,
		.event_sync_id = e->event_sync,
		.ret = e->ret,
		.process = lull_recording_process(r, task->process),
	};
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
		.lane = lane_of(r, task->process, &e->place),
		.correlation = e->place.correlation,
		.graph_id = event->a,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_graph, &row);
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
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
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
		.device = device_of(r, task->process, e->place.device),
		.operation = (u8)event->a,
		.memory_kind = (u8)(event->a >> 8),
		.address = e->address,
		.size_bytes = e->size_bytes,
		.correlation = e->place.correlation,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_cuda_memory, &row);
}
