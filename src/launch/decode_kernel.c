#include "launch/decode_kernel.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "launch/decode.h"
#include "launch/decode_cuda_int.h"
#include "symbol/demangle.h"

/* A time or clock that was measured; what makes no sense is 0. */
static u64 whole(f64 value)
{
	return isfinite(value) && value > 0 && value < 1e18 ? (u64)(value + 0.5) : 0;
}

/* The innermost range that is open on the thread, 0 if none is. */
static u32 range_of(const struct lull_task *task)
{
	const struct lull_open_range *open = task->open.at;

	return task->open.n ? open[task->open.n - 1].label : 0;
}

/* Why counters were refused, and what helps. */
static const char *remedy_of(u32 status)
{
	switch (status) {
	case LULL_PROFILED_DENIED:
		return "the driver lets only the administrator read counters; run as root, or load "
		       "the module nvidia with NVreg_RestrictProfilingToAdminUsers=0";
	case LULL_PROFILED_BUSY:
		return "another tool reads the counters of this device; end it and try again";
	case LULL_PROFILED_UNSUPPORTED:
		return "this device or this CUPTI has none for us: MIG, a virtual device, "
		       "confidential computing, or CUDA before 12.6";
	}
	return NULL;
}

static enum lull_issue issue_of(u32 status)
{
	return status == LULL_PROFILED_UNSAFE	? LULL_ISSUE_not_replayed
	       : status == LULL_PROFILED_FAILED ? LULL_ISSUE_kernel_failed
						: LULL_ISSUE_counters_refused;
}

static void note_refusal(struct lull_recording *r, struct lull_task *task, u32 status,
			 const struct lull_wire_profiled *e)
{
	struct lull_str text = LULL_STR_INIT;
	const char *remedy = remedy_of(status), *said = lull_recording_kept(r, e->why);

	if (status == LULL_PROFILED_OK)
		return;
	lull_str_addf(&text, "%s%s%s", remedy ? remedy : "", remedy && *said ? "; CUPTI says " : "",
		      said);
	lull_recording_issue(r, issue_of(status), task->process, 1, text.len ? text.at : NULL);
	lull_str_release(&text);
}

void lull_decode_profiled(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_profiled *e = (const void *)event;
	struct lull_profiled_row row;
	u32 *launch;

	(void)level;
	if (!r->writer)
		return;
	launch = lull_map_find(&r->launches, e->launch);
	row = (struct lull_profiled_row){
		.start_ns = lull_decode_time(r, event),
		.dur_ns = whole(e->dur_ns),
		.profiled_id = r->profiled.n + 1,
		.process = lull_recording_process(r, task->process),
		.device = lull_cuda_device(r, task->process, e->place.device),
		.context_id = e->place.context,
		.stream_id = e->place.stream,
		.launch = launch ? *launch : 0,
		.ordinal = e->ordinal,
		.n_passes = e->n_passes,
		.replay = (u8)event->a,
		.range = range_of(task),
		.sm_clock_hz = whole(e->sm_clock_hz),
		.dram_clock_hz = whole(e->dram_clock_hz),
		.cost_ns = lull_clock_dur_ns(r->clock, e->cost_ticks),
		.status = (u8)(event->a >> 8),
		.correlation = e->place.correlation,
	};
	*(struct lull_profiled_known *)lull_vec_push(&r->profiled) =
		(struct lull_profiled_known){ task->process, e->ordinal, row.start_ns };
	task->profiled_id = row.profiled_id;
	task->profiled_start_ns = row.start_ns;
	note_refusal(r, task, row.status, e);
	if (row.dur_ns)
		lull_recording_add(r, LULL_TABLE_profiled, &row);
	else
		*(struct lull_held_profiled *)lull_vec_push(&r->held_profiled) =
			(struct lull_held_profiled){ task->process, row };
}

void lull_profiled_kernel(struct lull_recording *r, const struct lull_process *p, u32 correlation,
			  u64 dur_ns)
{
	struct lull_held_profiled *held = r->held_profiled.at;

	for (size_t i = 0; i < r->held_profiled.n; i++) {
		if (held[i].process != p || held[i].row.correlation != correlation)
			continue;
		held[i].row.dur_ns = dur_ns;
		lull_recording_add(r, LULL_TABLE_profiled, &held[i].row);
		held[i] = held[--r->held_profiled.n];
		return;
	}
}

void lull_profiled_finish(struct lull_recording *r)
{
	const struct lull_held_profiled *held = r->held_profiled.at;

	for (size_t i = 0; i < r->held_profiled.n; i++)
		lull_recording_add(r, LULL_TABLE_profiled, &held[i].row);
	r->held_profiled.n = 0;
}

void lull_decode_kmetric(struct lull_recording *r, struct lull_task *task, u32 level,
			 const struct lull_event *event)
{
	const struct lull_wire_kmetric *e = (const void *)event;
	struct lull_kmetric_row row = {
		.start_ns = task->profiled_start_ns,
		.profiled_id = task->profiled_id,
		.value = e->value,
	};

	(void)level;
	/* A value that does not exist, such as a hit rate without accesses. */
	if (!r->writer || !task->profiled_id || !isfinite(e->value))
		return;
	row.key = lull_recording_name(r, e->key);
	row.name = lull_recording_name(r, e->name);
	lull_recording_add(r, LULL_TABLE_kmetric, &row);
}

/* The launch with this number in its process; its id, 0 if it is not known. */
static u64 find_profiled(const struct lull_recording *r, const struct lull_process *p, u64 ordinal,
			 u64 *start_ns)
{
	const struct lull_profiled_known *all = r->profiled.at;

	/* From the end: samples come soon after what they belong to. */
	for (size_t i = r->profiled.n; i-- > 0;) {
		if (all[i].process == p && all[i].ordinal == ordinal) {
			*start_ns = all[i].start_ns;
			return i + 1;
		}
	}
	return 0;
}

void lull_decode_pcsample(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_pcsample *e = (const void *)event;
	const char *mangled = lull_cuda_text(r, e->function);
	struct lull_pcsample_row row = {
		.pc_offset_bytes = e->pc_offset,
		.n_samples = e->n_samples,
		.line = event->a,
	};
	char *name;

	(void)level;
	if (!r->writer)
		return;
	row.start_ns = lull_decode_time(r, event);
	row.profiled_id = find_profiled(r, task->process, e->ordinal, &row.start_ns);
	name = mangled ? lull_demangle(mangled) : NULL;
	row.process = lull_recording_process(r, task->process);
	row.function = lull_recording_text(r, name ? name : mangled);
	row.stall = lull_recording_name(r, e->stall);
	row.file = lull_recording_name(r, e->file);
	lull_recording_add(r, LULL_TABLE_pcsample, &row);
	free(name);
}
