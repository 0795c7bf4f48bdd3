/*
 * decode_cuda_objects - devices, contexts, streams and their names; device code; unified memory.
 *
 * Work of a device lies on a lane of its own for each (process, device, context, stream). CUPTI
 * numbers contexts and streams per process. What is known of them arrives when CUPTI is flushed, so
 * rows are written when they are first needed and again at the end.
 */
#include "record/decode/decode_event.h"

#include <stdio.h>
#include <string.h>

#include "record/decode/decode_cuda_int.h"

#define LANE_STREAM 2

const char *lull_cuda_text(struct lull_recording *r, u64 hash)
{
	u32 *ix = lull_map_find(&r->texts, hash);

	return ix ? ((char **)r->text_list.at)[*ix - 1] : NULL;
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
		.given_name = lull_recording_text(r, gpu->given_name),
	};
}

u32 lull_cuda_device(struct lull_recording *r, struct lull_process *p, u32 device_id)
{
	struct lull_gpu *gpu = gpu_of(p, device_id);

	if (!gpu->row) {
		struct lull_device_row row = device_row(r, p, gpu);

		gpu->row = lull_writer_add_dim(r->writer, LULL_TABLE_device, &row);
	}
	return gpu->row;
}

/* What is known of a stream; added if it is new. */
static struct lull_stream_facts *facts_of(struct lull_process *p, u32 stream_id)
{
	struct lull_stream_facts *all = p->stream_facts.at, *facts;

	for (size_t i = p->stream_facts.n; i-- > 0;)
		if (all[i].stream_id == stream_id)
			return &all[i];
	facts = lull_vec_push(&p->stream_facts);
	facts->stream_id = stream_id;
	return facts;
}

static struct lull_gpu_context *context_of(struct lull_process *p, u32 context_id)
{
	struct lull_gpu_context *all = p->contexts.at, *context;

	for (size_t i = 0; i < p->contexts.n; i++)
		if (all[i].context_id == context_id)
			return &all[i];
	context = lull_vec_push(&p->contexts);
	context->context_id = context_id;
	return context;
}

/* A wait knows its context but not the device. */
static u32 device_of_context(struct lull_process *p, u32 context_id)
{
	const struct lull_gpu_stream *all = p->streams.at;
	const struct lull_gpu_context *context = context_of(p, context_id);

	if (context->is_known)
		return context->device_id;
	/* Another stream of that context may. */
	for (size_t i = 0; i < p->streams.n; i++)
		if (all[i].context_id == context_id)
			return all[i].device_id;
	return 0;
}

static struct lull_lane_row stream_row(struct lull_recording *r, struct lull_process *p,
				       const struct lull_gpu_stream *s)
{
	const struct lull_stream_facts *facts = facts_of(p, s->stream_id);
	char name[48];

	snprintf(name, sizeof(name), "stream %u", s->stream_id);
	return (struct lull_lane_row){
		.kind = LANE_STREAM,
		.process = lull_recording_process(r, p),
		.name = lull_recording_text(r, *facts->name ? facts->name : name),
		.device = lull_cuda_device(r, p, s->device_id),
		.context_id = s->context_id,
		.stream_id = s->stream_id,
		.priority = facts->priority,
		.stream_kind = (u8)facts->kind,
	};
}

u32 lull_cuda_lane(struct lull_recording *r, struct lull_process *p,
		   const struct lull_wire_place *place)
{
	u32 device_id =
		place->device == UINT32_MAX ? device_of_context(p, place->context) : place->device;
	struct lull_gpu_stream *all = p->streams.at, *s;
	struct lull_lane_row row;

	for (size_t i = p->streams.n; i-- > 0;)
		if (all[i].stream_id == place->stream && all[i].context_id == place->context &&
		    all[i].device_id == device_id)
			return all[i].lane;
	s = lull_vec_push(&p->streams);
	s->device_id = device_id;
	s->context_id = place->context;
	s->stream_id = place->stream;
	row = stream_row(r, p, s);
	s->lane = lull_writer_add_dim(r->writer, LULL_TABLE_lane, &row);
	return s->lane;
}

static void write_contexts(struct lull_recording *r, struct lull_process *p)
{
	const struct lull_gpu_context *all = p->contexts.at;

	for (size_t i = 0; i < p->contexts.n; i++) {
		struct lull_cuda_context_row row = {
			.process = lull_recording_process(r, p),
			.device = lull_cuda_device(r, p, all[i].device_id),
			.context_id = all[i].context_id,
			.name = lull_recording_text(r, all[i].name),
			.null_stream_id = all[i].null_stream_id,
			.api = (u8)all[i].api,
			.parent_context_id = all[i].parent_id,
			.is_green = all[i].is_green,
			.n_sms = all[i].n_sms,
		};

		if (all[i].is_known)
			lull_writer_add_dim(r->writer, LULL_TABLE_cuda_context, &row);
	}
}

void lull_decode_devices(struct lull_recording *r, struct lull_process *p)
{
	const struct lull_gpu_stream *streams = p->streams.at;

	/* First: a context may name a device that nobody has told of, which is added then. */
	write_contexts(r, p);
	for (size_t i = 0; i < p->gpus.n; i++) {
		const struct lull_gpu *gpu = lull_vec_get(&p->gpus, i);
		struct lull_device_row row;

		if (!gpu->row)
			continue;
		row = device_row(r, p, gpu);
		lull_writer_set_dim(r->writer, LULL_TABLE_device, gpu->row, &row);
	}
	for (size_t i = 0; i < p->streams.n; i++) {
		struct lull_lane_row row = stream_row(r, p, &streams[i]);

		lull_writer_set_dim(r->writer, LULL_TABLE_lane, streams[i].lane, &row);
	}
}

void lull_decode_cuda_context(struct lull_recording *r, struct lull_task *task, u32 level,
			      const struct lull_event *event)
{
	const struct lull_wire_cuda_context *e = (const void *)event;
	struct lull_gpu_context *context = context_of(task->process, event->a);

	(void)r;
	(void)level;
	context->is_known = true;
	context->device_id = e->device;
	context->null_stream_id = e->null_stream;
	context->parent_id = e->parent;
	context->api = e->api;
	context->is_green = e->is_green != 0;
	context->n_sms = e->n_sms;
}

void lull_decode_cuda_stream(struct lull_recording *r, struct lull_task *task, u32 level,
			     const struct lull_event *event)
{
	const struct lull_wire_cuda_stream *e = (const void *)event;
	struct lull_stream_facts *facts = facts_of(task->process, event->a);

	(void)r;
	(void)level;
	facts->priority = e->priority;
	facts->kind = e->kind;
}

void lull_decode_cuda_name(struct lull_recording *r, struct lull_task *task, u32 level,
			   const struct lull_event *event)
{
	const struct lull_wire_cuda_name *e = (const void *)event;
	const char *name = lull_cuda_text(r, e->name);
	struct lull_process *p = task->process;
	u32 id = (u32)e->id;

	(void)level;
	if (!name)
		return;
	if (event->a == LULL_NAMED_STREAM)
		snprintf(facts_of(p, id)->name, LULL_GIVEN_NAME_BYTES, "%s", name);
	else if (event->a == LULL_NAMED_CONTEXT)
		snprintf(context_of(p, id)->name, LULL_GIVEN_NAME_BYTES, "%s", name);
	else if (event->a == LULL_NAMED_DEVICE)
		snprintf(gpu_of(p, id)->given_name, LULL_GIVEN_NAME_BYTES, "%s", name);
}

void lull_decode_cuda_module(struct lull_recording *r, struct lull_task *task, u32 level,
			     const struct lull_event *event)
{
	const struct lull_wire_cuda_module *e = (const void *)event;
	struct lull_cuda_module_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_cuda_module_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.kind = (u8)event->a,
		.module_id = e->module_id,
		.size_bytes = e->size_bytes,
		.context_id = e->context,
		.correlation = e->correlation,
		.tid = e->tid,
		.path = e->path ? lull_recording_text(r, lull_cuda_text(r, e->path)) : 0,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_cuda_module, &row);
}

/* Kinds whose value counts faults; the others' counts bytes. */
static bool is_fault(u32 kind)
{
	enum { CPU_FAULT = 3, GPU_FAULT = 4 };

	return kind == CPU_FAULT || kind == GPU_FAULT;
}

void lull_decode_um_event(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_um_event *e = (const void *)event;
	struct lull_um_event_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_um_event_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_clock_dur_ns(r->clock, e->dur_ticks),
		.kind = (u8)event->a,
		.address = e->address,
		.size_bytes = is_fault(event->a) ? 0 : e->value,
		.n_faults = is_fault(event->a) ? e->value : 0,
		.cause = e->cause,
		.src_device_id = e->src_device,
		.dst_device_id = e->dst_device,
		.process = lull_recording_process(r, task->process),
	};
	lull_recording_add(r, LULL_TABLE_um_event, &row);
}
