#include "record/live/pulse.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "record/recording.h"
#include "model/words.h"

/* Calls that are remembered, by the low bits of their number; CUPTI delivers within 200 ms. */
#define N_CALLS 32768u

/* Threads whose waits are remembered, by the low bits of their lane, and how many each. */
#define N_THREADS 64u
#define N_WAITS	  64u

/* A CUDA call that is shorter than this is not a wait: on H200 a launch takes 2 to 5 us. */
#define WAIT_NS 10000u

/* Fewer steps say nothing about what is usual. */
#define MIN_STEPS 8u

struct lull_pulse_calls {
	struct call {
		u64 start_ns, end_ns;
		u32 correlation, process, lane;
	} at[N_CALLS];
};

struct lull_pulse_waits {
	struct thread {
		u32 lane;
		u32 n; /* ever; the ring holds the last */
		struct wait {
			u64 start_ns, end_ns;
			enum lull_pulse_cause cause;
		} at[N_WAITS];
	} threads[N_THREADS];
};

const char *const lull_pulse_causes[LULL_PULSE_N_CAUSES] = {
	[LULL_PULSE_LAUNCH] = "launch",
	[LULL_PULSE_QUEUE] = "queue",
	[LULL_PULSE_CUDA_CALL] = "cuda-call",
	[LULL_PULSE_OS_CALL] = "os-call",
	[LULL_PULSE_GIL] = "gil",
	[LULL_PULSE_HOST_CODE] = "host-code",
};

/* What all rows of device work have. */
struct work {
	u64 start_ns, dur_ns;
	u32 lane, process, correlation;
	u32 device; /* of `devices` */
};

/* More than this are not waited with: 20 ms of the fastest launches are 10,000. */
#define MAX_WORKS 16384u

void lull_pulse_init(struct lull_pulse *p)
{
	*p = (struct lull_pulse){ 0 };
	lull_vec_init(&p->works, sizeof(struct work));
	lull_vec_init(&p->step_labels, 1);
	lull_vec_init(&p->end_labels, 1);
	p->calls = lull_alloc(1, sizeof(*p->calls));
	p->waits = lull_alloc(1, sizeof(*p->waits));
}

void lull_pulse_release(struct lull_pulse *p)
{
	lull_vec_release(&p->step_labels);
	lull_vec_release(&p->end_labels);
	lull_live_requests_release(&p->requests);
	lull_vec_release(&p->works);
	free(p->calls);
	free(p->waits);
	*p = (struct lull_pulse){ 0 };
}

/* ---- steps ---- */

static u64 usual_ns(const struct lull_pulse_loop *loop)
{
	size_t n = loop->n < LULL_PULSE_HISTORY ? loop->n : LULL_PULSE_HISTORY;
	u64 sorted[LULL_PULSE_HISTORY];

	if (n < MIN_STEPS)
		return 0;
	memcpy(sorted, loop->last_ns, n * sizeof(*sorted));
	lull_sort_u64(sorted, n);
	return sorted[n / 2];
}

static struct lull_pulse_loop *loop_of(struct lull_pulse *p, u32 lane)
{
	for (u32 i = 0; i < p->n_loops; i++)
		if (p->loops[i].lane == lane)
			return &p->loops[i];
	if (p->n_loops == LULL_PULSE_MAX_LOOPS)
		return NULL;
	p->loops[p->n_loops] = (struct lull_pulse_loop){ .lane = lane };
	return &p->loops[p->n_loops++];
}

static void judge(struct lull_pulse *p, u32 lane, const struct lull_slow_step *step)
{
	struct lull_pulse_loop *loop = loop_of(p, lane);
	u64 usual;

	if (!loop)
		return;
	usual = usual_ns(loop);
	if ((p->slow_ns && step->dur_ns > p->slow_ns) ||
	    (p->slow_factor > 0 && usual && (f64)step->dur_ns > p->slow_factor * (f64)usual)) {
		p->slow = *step;
		p->slow.usual_ns = usual;
	}
	loop->last_ns[loop->n++ % LULL_PULSE_HISTORY] = step->dur_ns;
}

static void add_step(struct lull_pulse *p, u32 lane, const struct lull_slow_step *step)
{
	static const u64 bounds[] = LULL_PULSE_BUCKETS;
	size_t bucket = 0;

	while (bucket < LULL_PULSE_N_BUCKETS && step->dur_ns > bounds[bucket])
		bucket++;
	p->step_counts[bucket]++;
	p->n_steps++;
	p->step_ns += step->dur_ns;
	p->last_step_ns = step->dur_ns;
	judge(p, lane, step);
}

static void see_step(struct lull_pulse *p, const struct lull_step_row *row)
{
	/* Whoever marks steps means these, not ranges that happen to be called so. */
	if (!p->has_steps) {
		p->has_steps = true;
		p->n_loops = 0;
	}
	add_step(p, row->lane,
		 &(struct lull_slow_step){ row->number, row->start_ns, row->dur_ns, 0 });
}

static void see_range(struct lull_pulse *p, const struct lull_range_row *row)
{
	const u8 *is_step = p->step_labels.at;

	if (!p->has_steps && row->label < p->step_labels.n && is_step[row->label])
		add_step(p, row->lane,
			 &(struct lull_slow_step){ row->payload, row->start_ns, row->dur_ns, 0 });
}

void lull_pulse_label(struct lull_pulse *p, u32 label, const char *name)
{
	while (p->step_labels.n <= label) {
		lull_vec_push(&p->step_labels);
		lull_vec_push(&p->end_labels);
	}
	((u8 *)p->step_labels.at)[label] = lull_name_is_step(name);
	((u8 *)p->end_labels.at)[label] = (u8)lull_live_end_of(name);
}

/* ---- what threads wait for ---- */

static void add_wait(struct lull_pulse *p, u32 lane, u64 start_ns, u64 dur_ns,
		     enum lull_pulse_cause cause)
{
	struct thread *t = &p->waits->threads[lane % N_THREADS];

	if (t->lane != lane)
		*t = (struct thread){ .lane = lane };
	t->at[t->n++ % N_WAITS] = (struct wait){ start_ns, start_ns + dur_ns, cause };
}

static u32 process_of(struct lull_recording *r, u32 lane)
{
	const struct lull_lane_row *row =
		lane ? lull_writer_dim(r->writer, LULL_TABLE_lane, lane) : NULL;

	return row ? row->process : 0;
}

static void see_mark(struct lull_pulse *p, struct lull_recording *r,
		     const struct lull_mark_row *row)
{
	const struct lull_label_row *label =
		row->label ? lull_writer_dim(r->writer, LULL_TABLE_label, row->label) : NULL;
	const u8 *ends = p->end_labels.at;

	if (!label || label->api != LULL_REQUEST_API)
		return;
	lull_live_requests_add(
		&p->requests,
		&(struct lull_live_mark){
			.id = row->payload,
			.at_ns = row->start_ns,
			.process = process_of(r, row->lane),
			.kind = (enum lull_request_kind)label->category,
			.end = row->label < p->end_labels.n ? ends[row->label] : LULL_LIVE_ANSWERED,
		});
}

static void see_call(struct lull_pulse *p, struct lull_recording *r,
		     const struct lull_cuda_call_row *row)
{
	p->calls->at[row->correlation % N_CALLS] = (struct call){
		.start_ns = row->start_ns,
		.end_ns = row->start_ns + row->dur_ns,
		.correlation = row->correlation,
		.process = process_of(r, row->lane),
		.lane = row->lane,
	};
	if (row->dur_ns >= WAIT_NS)
		add_wait(p, row->lane, row->start_ns, row->dur_ns, LULL_PULSE_CUDA_CALL);
}

/* ---- devices ---- */

static struct lull_pulse_device *device_of(struct lull_pulse *p, struct lull_recording *r, u32 lane)
{
	const struct lull_lane_row *row =
		lane ? lull_writer_dim(r->writer, LULL_TABLE_lane, lane) : NULL;
	const struct lull_device_row *device;
	const struct lull_process_row *process;
	struct lull_pulse_device *d;

	if (!row || !row->device)
		return NULL;
	for (u32 i = 0; i < p->n_devices; i++)
		if (p->devices[i].device == row->device)
			return &p->devices[i];
	device = lull_writer_dim(r->writer, LULL_TABLE_device, row->device);
	process = lull_writer_dim(r->writer, LULL_TABLE_process, device->process);
	/* Known from an earlier report, under another row. */
	for (d = p->devices; d < p->devices + p->n_devices; d++) {
		if (!d->device && d->pid == process->pid && d->number == device->device_id) {
			d->device = row->device;
			return d;
		}
	}
	if (p->n_devices == LULL_PULSE_MAX_DEVICES)
		return NULL;
	p->n_devices++;
	*d = (struct lull_pulse_device){ .device = row->device,
					 .pid = process->pid,
					 .number = device->device_id };
	return d;
}

/* Give [from, to) of the calling thread to what it waited for; the rest is its own code. */
static void blame_thread(struct lull_pulse *p, struct lull_pulse_device *d, u32 lane, u64 from_ns,
			 u64 to_ns)
{
	const struct thread *t = &p->waits->threads[lane % N_THREADS];
	u32 n = t->lane != lane ? 0 : t->n < N_WAITS ? t->n : N_WAITS;
	u64 left_ns = to_ns - from_ns;

	for (u32 i = 0; i < n && left_ns; i++) {
		u64 begin = t->at[i].start_ns > from_ns ? t->at[i].start_ns : from_ns;
		u64 end = t->at[i].end_ns < to_ns ? t->at[i].end_ns : to_ns;
		u64 part_ns = end > begin ? end - begin : 0;

		/* Calls inside calls: no moment is given away twice. */
		part_ns = part_ns < left_ns ? part_ns : left_ns;
		d->idle_ns[t->at[i].cause] += part_ns;
		left_ns -= part_ns;
	}
	d->idle_ns[LULL_PULSE_HOST_CODE] += left_ns;
}

static void add_gap(struct lull_pulse *p, struct lull_pulse_device *d, u32 process, u32 correlation,
		    u64 end_ns)
{
	const struct call *c = &p->calls->at[correlation % N_CALLS];
	u64 begin_ns = d->busy_until_ns;

	if (!correlation || c->correlation != correlation || c->process != process ||
	    c->end_ns <= begin_ns) {
		d->idle_ns[LULL_PULSE_QUEUE] += end_ns - begin_ns;
	} else if (c->start_ns <= begin_ns) {
		d->idle_ns[LULL_PULSE_LAUNCH] += end_ns - begin_ns;
	} else {
		u64 call_ns = c->start_ns < end_ns ? c->start_ns : end_ns;

		d->idle_ns[LULL_PULSE_LAUNCH] += end_ns - call_ns;
		blame_thread(p, d, c->lane, begin_ns, call_ns);
	}
}

static void add_work(struct lull_pulse *p, const struct work *w)
{
	struct lull_pulse_device *d = &p->devices[w->device];
	u64 end_ns = w->start_ns + w->dur_ns, from_ns;

	if (d->busy_until_ns && w->start_ns > d->busy_until_ns)
		add_gap(p, d, w->process, w->correlation, w->start_ns);
	from_ns = w->start_ns > d->busy_until_ns ? w->start_ns : d->busy_until_ns;
	if (end_ns > from_ns) {
		d->busy_ns += end_ns - from_ns;
		d->busy_until_ns = end_ns;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void lull_pulse_settle(struct lull_pulse *p)
{
	struct work *all = p->works.at;
	bool is_sorted = true;

	for (size_t i = 1; i < p->works.n && is_sorted; i++)
		is_sorted = all[i - 1].start_ns <= all[i].start_ns;
	if (!is_sorted)
		lull_sort(all, p->works.n, sizeof(*all), by_start);
	for (size_t i = 0; i < p->works.n; i++)
		add_work(p, &all[i]);
	p->works.n = 0;
}

static void see_work(struct lull_pulse *p, struct lull_recording *r, const struct work *w)
{
	struct lull_pulse_device *d = device_of(p, r, w->lane);
	struct work *kept;

	if (!d)
		return;
	if (p->works.n == MAX_WORKS)
		lull_pulse_settle(p);
	kept = lull_vec_push(&p->works);
	*kept = *w;
	kept->device = (u32)(d - p->devices);
}

#define WORK_OF(row)                                                                  \
	(&(struct work){ (row)->start_ns, (row)->dur_ns, (row)->lane, (row)->process, \
			 (row)->correlation, 0 })

static void see_kernel(struct lull_pulse *p, struct lull_recording *r,
		       const struct lull_kernel_row *row)
{
	p->n_kernels++;
	p->n_launches += !row->graph_id;
	see_work(p, r, WORK_OF(row));
}

static void see_copy(struct lull_pulse *p, struct lull_recording *r,
		     const struct lull_memcpy_row *row)
{
	size_t kind = row->copy_kind < LULL_COUNT_OF(p->copied_bytes) ? row->copy_kind : 0;

	p->n_copies++;
	p->copied_bytes[kind] += row->size_bytes;
	see_work(p, r, WORK_OF(row));
}

void lull_pulse_add(struct lull_pulse *p, struct lull_recording *r, enum lull_table table,
		    const void *row)
{
	const struct lull_oscall_row *os = row;
	const struct lull_gil_wait_row *gil = row;

	switch (table) {
	case LULL_TABLE_step:
		see_step(p, row);
		break;
	case LULL_TABLE_range:
		see_range(p, row);
		break;
	case LULL_TABLE_mark:
		see_mark(p, r, row);
		break;
	case LULL_TABLE_cuda_call:
		see_call(p, r, row);
		break;
	case LULL_TABLE_oscall:
		add_wait(p, os->lane, os->start_ns, os->dur_ns, LULL_PULSE_OS_CALL);
		break;
	case LULL_TABLE_gil_wait:
		add_wait(p, gil->lane, gil->start_ns, gil->dur_ns, LULL_PULSE_GIL);
		break;
	case LULL_TABLE_kernel:
		see_kernel(p, r, row);
		break;
	case LULL_TABLE_memcpy:
		see_copy(p, r, row);
		break;
	case LULL_TABLE_memset:
		p->n_memsets++;
		see_work(p, r, WORK_OF((const struct lull_memset_row *)row));
		break;
	case LULL_TABLE_graph:
		p->n_launches++;
		see_work(p, r, WORK_OF((const struct lull_graph_row *)row));
		break;
	default:
		break;
	}
}

void lull_pulse_turn(struct lull_pulse *p)
{
	for (u32 i = 0; i < p->n_devices; i++) {
		struct lull_pulse_device *d = &p->devices[i];

		d->past_busy_ns = d->busy_ns;
		memcpy(d->past_idle_ns, d->idle_ns, sizeof(d->idle_ns));
	}
}

void lull_pulse_new_report(struct lull_pulse *p)
{
	lull_pulse_settle(p);
	p->step_labels.n = p->end_labels.n = 0;
	lull_live_requests_forget(&p->requests);
	p->n_loops = 0;
	memset(p->calls, 0, sizeof(*p->calls));
	memset(p->waits, 0, sizeof(*p->waits));
	for (u32 i = 0; i < p->n_devices; i++) {
		p->devices[i].device = 0;
		p->devices[i].busy_until_ns = 0;
	}
}
