#include "record/decode/decode_kernel.h"

#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "base/str.h"
#include "record/decode/decode_event.h"
#include "record/decode/decode_cuda_int.h"
#include "symbol/demangle.h"

/* Durations of so many kernels are kept; a program whose counters are refused has few to show. */
#define MAX_KNOWN 1000000u

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
		return "this device or this version of CUPTI provides no counters: MIG, a virtual "
		       "device, "
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
		.n_launches = e->n_launches,
		.n_launches_least = e->n_launches_least,
	};
	/* A range whose counters were refused took as long as the program was in it. */
	if (!row.dur_ns && row.replay == LULL_REPLAY_RANGE)
		row.dur_ns = row.cost_ns;
	*(struct lull_profiled_known *)lull_vec_push(&r->profiled) =
		(struct lull_profiled_known){ task->process, e->ordinal, row.start_ns,
					      row.process };
	task->profiled_id = row.profiled_id;
	task->profiled_start_ns = row.start_ns;
	note_refusal(r, task, row.status, e);
	if (row.dur_ns)
		lull_recording_add(r, LULL_TABLE_profiled, &row);
	else
		*(struct lull_held_profiled *)lull_vec_push(&r->held_profiled) =
			(struct lull_held_profiled){ task->process, row };
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

void lull_decode_pcsample(struct lull_recording *r, struct lull_task *task, u32 level,
			  const struct lull_event *event)
{
	const struct lull_wire_pcsample *e = (const void *)event;
	const char *mangled = lull_cuda_text(r, e->function);
	struct lull_held_pcsample *held;
	char *name;

	(void)level;
	if (!r->writer)
		return;
	name = mangled ? lull_demangle(mangled) : NULL;
	held = lull_vec_push(&r->held_pcsamples);
	*held = (struct lull_held_pcsample){
		.process = task->process,
		.ordinal = e->ordinal,
		.row = {
			.start_ns = lull_decode_time(r, event),
			.function = lull_recording_text(r, name ? name : mangled),
			.pc_offset_bytes = e->pc_offset,
			.stall = lull_recording_name(r, e->stall),
			.n_samples = e->n_samples,
			.file = lull_recording_name(r, e->file),
			.line = event->a,
		},
	};
	free(name);
}

void lull_profiled_init(struct lull_recording *r)
{
	lull_vec_init(&r->profiled, sizeof(struct lull_profiled_known));
	lull_vec_init(&r->held_profiled, sizeof(struct lull_held_profiled));
	lull_vec_init(&r->held_pcsamples, sizeof(struct lull_held_pcsample));
	lull_vec_init(&r->known_kernels, sizeof(struct lull_kernel_known));
}

void lull_profiled_release(struct lull_recording *r)
{
	lull_vec_release(&r->profiled);
	lull_vec_release(&r->held_profiled);
	lull_vec_release(&r->held_pcsamples);
	lull_vec_release(&r->known_kernels);
}

void lull_profiled_clear(struct lull_recording *r)
{
	r->profiled.n = 0;
	r->held_profiled.n = 0;
	r->held_pcsamples.n = 0;
	r->known_kernels.n = 0;
}

void lull_profiled_kernel(struct lull_recording *r, const struct lull_process *p, u32 correlation,
			  u64 dur_ns)
{
	if (r->known_kernels.n < MAX_KNOWN)
		*(struct lull_kernel_known *)lull_vec_push(&r->known_kernels) =
			(struct lull_kernel_known){ p, correlation, dur_ns };
}

static int by_correlation(const void *a, const void *b)
{
	const struct lull_kernel_known *x = a, *y = b;

	return x->correlation != y->correlation
		       ? (x->correlation > y->correlation ? 1 : -1)
		       : (x->process > y->process) - (x->process < y->process);
}

/* How long CUPTI says that the kernel of this call took, 0 if it did not. */
static u64 dur_of(const struct lull_recording *r, const struct lull_held_profiled *held)
{
	const struct lull_kernel_known key = { held->process, held->row.correlation, 0 };
	const struct lull_kernel_known *found =
		r->known_kernels.n ? bsearch(&key, r->known_kernels.at, r->known_kernels.n,
					     sizeof(key), by_correlation)
				   : NULL;

	return found ? found->dur_ns : 0;
}

static const struct lull_profiled_known *find_profiled(const struct lull_recording *r,
						       const struct lull_held_pcsample *held)
{
	const struct lull_profiled_known *all = r->profiled.at;

	for (size_t i = 0; i < r->profiled.n; i++)
		if (all[i].process == held->process && all[i].ordinal == held->ordinal)
			return &all[i];
	return NULL;
}

static void write_pcsamples(struct lull_recording *r)
{
	struct lull_held_pcsample *held = r->held_pcsamples.at;
	const struct lull_profiled_known *launch = NULL;

	for (size_t i = 0; i < r->held_pcsamples.n; i++) {
		/* Samples of a launch follow each other. */
		if (!launch || launch->process != held[i].process ||
		    launch->ordinal != held[i].ordinal)
			launch = find_profiled(r, &held[i]);
		if (!launch) {
			lull_recording_issue(r, LULL_ISSUE_samples_unmatched, NULL,
					     held[i].row.n_samples, NULL);
			continue;
		}
		held[i].row.start_ns = launch->start_ns;
		held[i].row.profiled_id =
			(u64)(launch - (struct lull_profiled_known *)r->profiled.at) + 1;
		held[i].row.process = launch->process_id;
		lull_recording_add(r, LULL_TABLE_pcsample, &held[i].row);
	}
}

void lull_profiled_finish(struct lull_recording *r)
{
	struct lull_held_profiled *held = r->held_profiled.at;

	if (r->known_kernels.n)
		lull_sort(r->known_kernels.at, r->known_kernels.n, sizeof(struct lull_kernel_known),
			  by_correlation);
	for (size_t i = 0; i < r->held_profiled.n; i++) {
		held[i].row.dur_ns = dur_of(r, &held[i]);
		lull_recording_add(r, LULL_TABLE_profiled, &held[i].row);
	}
	write_pcsamples(r);
	lull_profiled_clear(r);
}
