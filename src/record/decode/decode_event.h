/*
 * decode_event - events of an agent to rows of a report.
 *
 * One function per line of wire/wire.def, named lull_decode_NAME; the table in decode_event.c is
 * made from that list, so a new event is one function and one line.
 *
 * While no report is open only events that wire.def marks (always) have an effect.
 */
#ifndef LULL_RECORD_DECODE_DECODE_EVENT_H
#define LULL_RECORD_DECODE_DECODE_EVENT_H

#include "record/recording.h"

/* An event of `task` at nesting level `level` (0 or 1); its size is at least that of its struct. */
typedef void lull_decode_fn(struct lull_recording *r, struct lull_task *task, u32 level,
			    const struct lull_event *event);

#define EVENT(id, name, layout, doc) lull_decode_fn lull_decode_##name;
#include "wire/wire.def"
#undef EVENT

/* Decode one event. False if it makes no sense. */
bool lull_decode(struct lull_recording *r, struct lull_task *task, u32 level,
		 const struct lull_event *event);

/* When an event happened, in ns since the epoch of the report. */
u64 lull_decode_time(const struct lull_recording *r, const struct lull_event *event);

/* How long it took, in the time of the report: what is between windows is left out. */
u64 lull_decode_dur(const struct lull_recording *r, const struct lull_event *event, u64 dur_ticks);

/* The stack that the event before this one brought, used up; `a` is this one's. */
u32 lull_decode_take_stack(struct lull_task *task, u32 level, u32 a);

/* The node of a Python stack that was defined before; 0 for none. */
u32 lull_decode_pystack_of(const struct lull_recording *r, u64 hash);

/* End all open ranges and steps of a thread at `now_ns`, flagged as not ended by the program. */
void lull_decode_close(struct lull_recording *r, struct lull_task *task, u64 now_ns);

/* Write the devices of a process again, with what was learned since they were first used. */
void lull_decode_devices(struct lull_recording *r, struct lull_process *process);

/* The same for the start/end ranges of a process. */
void lull_decode_close_shared(struct lull_recording *r, struct lull_process *process, u64 now_ns);

#endif
