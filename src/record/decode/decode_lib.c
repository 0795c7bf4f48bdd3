/*
 * decode_lib - calls of libraries: functions watched by name, MPI, collectives.
 */
#include "record/decode/decode_event.h"

#include "record/decode/decode_nccl.h"

void lull_decode_lib_call(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_lib_call *e = (const void *)event;
	u32 depth = event->a & ~LULL_LIB_LEFT;
	struct lull_lib_call_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_lib_call_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.depth = (u16)(depth < UINT16_MAX ? depth : UINT16_MAX),
		.name = lull_recording_name(r, e->name),
		.flags = event->a & LULL_LIB_LEFT ? 1 : 0,
	};
	lull_recording_add(r, LULL_TABLE_lib_call, &row);
}

void lull_decode_mpi_call(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_mpi_call *e = (const void *)event;
	struct lull_mpi_call_row row;

	(void)level;
	if (!r->writer)
		return;
	row = (struct lull_mpi_call_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.name = lull_recording_name(r, e->name),
		.kind = (u8)event->a,
		.comm = e->comm,
		.comm_name = lull_recording_name(r, e->comm_name),
		.rank = e->rank,
		.n_ranks = e->n_ranks,
		.peer = e->peer,
		.root = e->root,
		.tag = e->tag,
		.send_bytes = e->send_bytes,
		.recv_bytes = e->recv_bytes,
		.ret = e->ret,
	};
	lull_recording_add(r, LULL_TABLE_mpi_call, &row);
}

void lull_decode_collective(struct lull_recording *r, struct lull_task *task, u32 level,
			    const struct lull_event *event)
{
	const struct lull_wire_collective *e = (const void *)event;
	struct lull_task *caller = lull_tree_find_task(task->process, event->a);
	struct lull_nccl_traffic traffic;
	struct lull_collective_row row;

	(void)level;
	if (!r->writer)
		return;
	traffic = lull_nccl_traffic(lull_recording_kept(r, e->name), e->size_bytes, e->n_ranks,
				    e->rank, e->peer);
	row = (struct lull_collective_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, caller ? caller : task),
		.source = 2,
		.name = lull_recording_name(r, e->name),
		.comm = e->comm,
		.comm_name = lull_recording_name(r, e->comm_name),
		.n_ranks = e->n_ranks,
		.rank = e->rank,
		.datatype = lull_recording_name(r, e->datatype),
		.in_bytes = traffic.in_bytes,
		.out_bytes = traffic.out_bytes,
		.peer = e->peer,
		.seq = e->seq,
		.algorithm = lull_recording_name(r, e->algorithm),
		.protocol = lull_recording_name(r, e->protocol),
		.n_channels = e->n_channels,
		.n_steps = e->n_steps,
		.net_bytes = e->net_bytes,
		.net_ns = lull_clock_dur_ns(r->clock, e->net_ticks),
	};
	lull_recording_add(r, LULL_TABLE_collective, &row);
}
