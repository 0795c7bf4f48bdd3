/*
 * decode_os - C library calls, interpreter-lock waits, samples from inside, and what describes a
 * process.
 */
#include "record/decode/decode_event.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/perf/callstack.h"
#include "wire/osrt.h"

u32 lull_decode_take_stack(struct lull_task *task, u32 level, u32 a)
{
	u32 stack = a & LULL_HAS_STACK ? task->stack[level] : 0;

	task->stack[level] = 0;
	return stack;
}

void lull_decode_stack(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_stack *e = (const void *)event;
	size_t room = event->size_bytes - sizeof(*e);
	struct lull_stack_bytes bytes = {
		.addr = e->regs.sp,
		.at = (const u8 *)(e + 1),
		.n_bytes = event->a < room ? event->a : room,
	};
	struct lull_regs regs;

	if (!r->writer)
		return;
	regs = lull_regs_from_wire(&e->regs);
	task->stack[level] = lull_callstack_add(r, task->process, &regs, &bytes, NULL, 0, NULL);
}

void lull_decode_oscall(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_oscall *e = (const void *)event;
	const char *name = lull_osrt_name(event->a & ~LULL_HAS_STACK);
	struct lull_oscall_row row;

	if (!r->writer)
		return;
	row = (struct lull_oscall_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.name = lull_recording_text(r, name),
		.ret = e->ret,
		.arg = e->arg,
		.stack = lull_decode_take_stack(task, level, event->a),
	};
	lull_recording_add(r, LULL_TABLE_oscall, &row);
	/* A part of a report may hold no such call; what the program is stays true. */
	if (e->ret >= 0 && !strncmp(name, "accept", 6))
		task->process->is_server = true;
}

void lull_decode_gil_wait(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_gil_wait *e = (const void *)event;
	struct lull_gil_wait_row row;

	if (!r->writer)
		return;
	row = (struct lull_gil_wait_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = lull_decode_dur(r, event, e->dur_ticks),
		.lane = lull_recording_lane(r, task),
		.n_slices = event->a & ~LULL_HAS_STACK,
		.stack = lull_decode_take_stack(task, level, event->a),
	};
	lull_recording_add(r, LULL_TABLE_gil_wait, &row);
}

void lull_decode_sample(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_sample *e = (const void *)event;
	struct lull_sample_row row;

	if (!r->writer)
		return;
	row = (struct lull_sample_row){
		.start_ns = lull_decode_time(r, event),
		.lane = lull_recording_lane(r, task),
		.stack = lull_decode_take_stack(task, level, event->a),
		.cpu = (u16)(event->a & ~LULL_HAS_STACK),
		.weight_ns = e->weight_ns,
		.source = 2,
	};
	lull_recording_add(r, LULL_TABLE_sample, &row);
}

/* Copy a name that is not terminated into a field of a struct. */
static void set_name(char *to, size_t room, const char *from, size_t len)
{
	size_t n = len < room - 1 ? len : room - 1;

	memcpy(to, from, n);
	to[n] = '\0';
}

/* Name the thread that the event is about; a label stays. */
static void name_task(struct lull_recording *r, struct lull_task *task,
		      const struct lull_wire_thread_name *e, bool is_label)
{
	size_t room = e->head.size_bytes - sizeof(*e);
	struct lull_task *named = task;

	if (e->tid && e->tid != task->tid)
		named = lull_tree_task(task->process, (u32)e->tid,
				       lull_clock_ns_of(r->clock, e->head.counter));
	if (named->is_name_label && !is_label)
		return;
	set_name(named->name, sizeof(named->name), (const char *)(e + 1),
		 e->head.a < room ? e->head.a : room);
	named->is_name_given = true;
	named->is_name_label = is_label;
}

void lull_decode_thread_name(struct lull_recording *r, struct lull_task *task, u32 level,
			     const struct lull_event *event)
{
	(void)level;
	name_task(r, task, (const void *)event, false);
}

void lull_decode_thread_label(struct lull_recording *r, struct lull_task *task, u32 level,
			      const struct lull_event *event)
{
	(void)level;
	name_task(r, task, (const void *)event, true);
}

/*
 * A library that was found by a relative path: as the process stands, which it may have left since.
 */
static void make_absolute(char *path, size_t room, u32 pid)
{
	char link[64], folder[4096], name[4096];
	ssize_t n;

	if (path[0] == '/' || path[0] == '[')
		return;
	snprintf(link, sizeof(link), "/proc/%u/cwd", pid);
	n = readlink(link, folder, sizeof(folder) - 1);
	if (n <= 0)
		return;
	folder[n] = '\0';
	snprintf(name, sizeof(name), "%s", path);
	if (snprintf(path, room, "%s/%s", folder, name) >= (int)room)
		path[0] = '\0';
}

void lull_decode_module(struct lull_recording *r, struct lull_task *task, u32 level,
			const struct lull_event *event)
{
	const struct lull_wire_module *e = (const void *)event;
	size_t room = event->size_bytes - sizeof(*e);
	const u8 *bytes = (const u8 *)(e + 1);
	struct lull_build_id id = { 0 };
	char path[4096];

	(void)level;
	if (e->build_id_bytes > room || event->a > room - e->build_id_bytes)
		return;
	id.n_bytes = e->build_id_bytes < sizeof(id.at) ? e->build_id_bytes : (u32)sizeof(id.at);
	memcpy(id.at, bytes, id.n_bytes);
	set_name(path, sizeof(path), (const char *)bytes + e->build_id_bytes, event->a);
	make_absolute(path, sizeof(path), task->process->pid);
	if (strstr(path, "/libtorch_python.so"))
		task->process->has_torch = true;
	lull_callstack_map(r, task->process,
			   &(struct lull_mmap){
				   .start = e->start_addr,
				   .end = e->end_addr,
				   .bias = e->bias,
				   .has_bias = true,
				   .path = path,
				   .build_id = id.n_bytes ? &id : NULL,
			   });
}

void lull_decode_child(struct lull_recording *r, struct lull_task *task, u32 level,
		       const struct lull_event *event)
{
	const struct lull_wire_child *e = (const void *)event;
	u64 now_ns = lull_clock_ns_of(r->clock, event->counter);
	u64 pid_ns = task->process->pid_ns;
	struct lull_process *child = pid_ns ? lull_tree_find_inner(r->tree, pid_ns, event->a)
					    : lull_tree_find(r->tree, event->a);

	(void)level;
	/* A number of another namespace is somebody else's here. */
	if (!child && pid_ns)
		return;
	/* The kernel's news of its birth may still be on their way. */
	if (!child) {
		child = lull_tree_get(r->tree, event->a, task->process->pid, now_ns);
		child->is_ours = true;
	}
	lull_tree_ended(child, (int)e->status, now_ns);
}
