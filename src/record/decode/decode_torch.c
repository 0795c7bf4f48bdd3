/*
 * decode_torch - operators and allocations of PyTorch.
 */
#include "record/decode/decode_event.h"

void lull_decode_op_label(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_op_label *e = (const void *)event;
	size_t room = event->size_bytes - sizeof(*e);
	const char *text = (const char *)(e + 1);
	struct lull_op_label_row row;
	bool is_new;
	u32 *id;

	(void)task;
	(void)level;
	if (!r->writer || event->a > room || e->n_types_bytes > room - event->a ||
	    e->n_inputs_bytes > room - event->a - e->n_types_bytes)
		return;
	id = lull_map_add(&r->op_labels, e->hash, &is_new);
	if (!is_new)
		return;
	row = (struct lull_op_label_row){
		.name = lull_recording_name(r, e->name),
		.kind = (u8)e->kind,
	};
	if (event->a)
		row.shapes = lull_writer_string(r->writer, text, event->a);
	if (e->n_types_bytes)
		row.types = lull_writer_string(r->writer, text + event->a, e->n_types_bytes);
	if (e->n_inputs_bytes)
		row.inputs = lull_writer_string(r->writer, text + event->a + e->n_types_bytes,
						e->n_inputs_bytes);
	*id = lull_writer_add_dim(r->writer, LULL_TABLE_op_label, &row);
}

void lull_decode_pyframe(struct lull_recording *r, struct lull_task *task, u32 level,
			 const struct lull_event *event)
{
	const struct lull_wire_pyframe *e = (const void *)event;
	bool is_new;
	u32 *id;

	(void)task;
	(void)level;
	if (!r->writer)
		return;
	id = lull_map_add(&r->py_frames, e->hash, &is_new);
	if (is_new)
		*id = lull_stacks_python_frame(&r->stacks, r->writer,
					       lull_recording_name(r, e->function),
					       lull_recording_name(r, e->file), event->a);
}

void lull_decode_pystack(struct lull_recording *r, struct lull_task *task, u32 level,
			 const struct lull_event *event)
{
	const struct lull_wire_pystack *e = (const void *)event;
	const u64 *frames = (const u64 *)(e + 1);
	size_t room = (event->size_bytes - sizeof(*e)) / sizeof(*frames);
	u32 node = 0, *id;
	bool is_new;

	(void)task;
	(void)level;
	if (!r->writer || event->a > room)
		return;
	id = lull_map_add(&r->py_stacks, e->hash, &is_new);
	for (u32 i = event->a; is_new && i-- > 0;) {
		const u32 *frame = lull_map_find(&r->py_frames, frames[i]);

		if (frame)
			node = lull_stacks_add_frame(&r->stacks, r->writer, node, *frame);
	}
	if (is_new)
		*id = node;
}

u32 lull_decode_pystack_of(const struct lull_recording *r, u64 hash)
{
	const u32 *id = hash ? lull_map_find(&r->py_stacks, hash) : NULL;

	return id ? *id : 0;
}

void lull_decode_op(struct lull_recording *r, struct lull_task *task, u32 level,
		    const struct lull_event *event)
{
	const struct lull_wire_op *e = (const void *)event;
	struct lull_op_row row;
	const u32 *label;

	(void)level;
	if (!r->writer)
		return;
	label = lull_map_find(&r->op_labels, e->label);
	row = (struct lull_op_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.depth = (u16)(event->a < UINT16_MAX ? event->a : UINT16_MAX),
		.label = label ? *label : 0,
		.sequence = e->sequence,
		.forward_tid = e->forward_tid,
		.stack = lull_decode_pystack_of(r, e->stack),
	};
	lull_recording_add(r, LULL_TABLE_op, &row);
}

void lull_decode_alloc(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_alloc *e = (const void *)event;
	struct lull_alloc_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_alloc_row){
		.start_ns = lull_decode_time(r, event),
		.lane = lull_recording_lane(r, task),
		.device_kind = (u8)(event->a & 0xff),
		.device_id = event->a >> 8 & 0xff,
		.address = e->address,
		.size_bytes = e->size_bytes,
		.allocated_bytes = e->allocated_bytes,
		.reserved_bytes = e->reserved_bytes,
		.stack = lull_decode_pystack_of(r, e->stack),
	};
	lull_recording_add(r, LULL_TABLE_alloc, &row);
}
