#include "record/decode/device_clock.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Calls that are remembered, by the low bits of their number; CUPTI delivers within 200 ms. */
#define N_CALLS 65536u

/* Waits that are remembered until the work before them is told. */
#define N_WAITS 1024u

struct lull_device_calls {
	u32 correlation[N_CALLS];
	u64 start_ns[N_CALLS];
	struct lull_device_wait waits[N_WAITS];
	u64 n_waits; /* ever */
};

static struct lull_device_calls *calls_of(struct lull_process *p)
{
	if (!p->device_calls)
		p->device_calls = lull_alloc(1, sizeof(*p->device_calls));
	return p->device_calls;
}

void lull_device_clock_call(struct lull_process *p, u32 correlation, u64 start_ns)
{
	struct lull_device_calls *calls = calls_of(p);

	calls->correlation[correlation % N_CALLS] = correlation;
	calls->start_ns[correlation % N_CALLS] = start_ns;
}

static void learn(i64 *shortest, u64 *n, i64 distance_ns)
{
	if (!*n || distance_ns < *shortest)
		*shortest = distance_ns;
	(*n)++;
}

/* When the call with this number began; false if that is not known. */
static bool find_call(const struct lull_device_work *work, u64 *start_ns)
{
	const struct lull_device_calls *calls = work->process->device_calls;
	u32 ix = work->correlation % N_CALLS;

	if (!calls || !work->correlation || calls->correlation[ix] != work->correlation)
		return false;
	*start_ns = calls->start_ns[ix];
	return true;
}

/*
 * Waits that came before the call with this number, beside the last work of this stream. CUPTI
 * tells of the work of a stream in the order of its calls, but later than we see calls and waits.
 */
static void compare_waits(struct lull_recording *r, const struct lull_process *p,
			  struct lull_gpu_stream *stream, u32 until)
{
	const struct lull_device_calls *calls = p->device_calls;

	if (calls->n_waits > N_WAITS && stream->n_waits < calls->n_waits - N_WAITS)
		stream->n_waits = calls->n_waits - N_WAITS;
	for (; stream->n_waits < calls->n_waits; stream->n_waits++) {
		const struct lull_device_wait *wait = &calls->waits[stream->n_waits % N_WAITS];

		if (wait->correlation >= until)
			break;
		if ((wait->lane && wait->lane != stream->lane) || !stream->last_end_ns ||
		    stream->last_correlation >= wait->correlation)
			continue;
		learn(&r->device_clock.tail_ns, &r->device_clock.n_tails,
		      (i64)(wait->end_ns - stream->last_end_ns));
	}
}

static void note_end(struct lull_recording *r, const struct lull_device_work *work)
{
	struct lull_gpu_stream *all = work->process->streams.at;

	for (size_t i = 0; i < work->process->streams.n; i++)
		if (all[i].lane == work->lane && work->correlation >= all[i].last_correlation) {
			if (work->process->device_calls)
				compare_waits(r, work->process, &all[i], work->correlation);
			all[i].last_correlation = work->correlation;
			all[i].last_end_ns = work->row.start_ns + work->dur_ns;
		}
}

static void add(struct lull_recording *r, struct lull_device_work *work)
{
	u64 call_ns;

	if (work->table == LULL_TABLE_kernel)
		note_end(r, work);
	if (find_call(work, &call_ns)) {
		learn(&r->device_clock.lead_ns, &r->device_clock.n_leads,
		      (i64)(work->row.start_ns - call_ns));
		if (work->row.start_ns < call_ns) {
			lull_recording_issue(r, LULL_ISSUE_clock_corrected, work->process, 1, NULL);
			work->row.start_ns = call_ns;
		}
	}
	if (r->axis)
		lull_axis_reach(r->axis, work->row.start_ns + work->dur_ns);
	lull_recording_add(r, work->table, &work->row);
}

void lull_device_clock_add(struct lull_recording *r, const struct lull_device_work *work)
{
	struct lull_device_work copy = *work;
	u64 call_ns;

	if (!work->correlation || find_call(work, &call_ns))
		add(r, &copy);
	else
		lull_vec_add(&r->held_work, work, 1);
}

void lull_device_clock_release(struct lull_recording *r)
{
	struct lull_device_work *all = r->held_work.at;

	for (size_t i = 0; r->writer && i < r->held_work.n; i++)
		add(r, &all[i]);
	r->held_work.n = 0;
}

void lull_device_clock_wait(struct lull_process *p, const struct lull_device_wait *wait)
{
	struct lull_device_calls *calls = calls_of(p);

	calls->waits[calls->n_waits++ % N_WAITS] = *wait;
}

static void note(struct lull_recording *r, const char *key, i64 ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)ns);
	lull_recording_meta(r, key, text);
}

void lull_device_clock_note(struct lull_recording *r)
{
	const struct lull_device_fit *fit = &r->device_clock;
	struct lull_process **processes = r->tree->processes.at;
	i64 late, early;

	for (size_t i = 0; i < r->tree->processes.n; i++) {
		struct lull_gpu_stream *streams = processes[i]->streams.at;

		for (size_t k = 0; processes[i]->device_calls && k < processes[i]->streams.n; k++)
			compare_waits(r, processes[i], &streams[k], UINT32_MAX);
	}
	late = llabs(fit->lead_ns);
	early = llabs(fit->tail_ns);

	if (fit->n_leads)
		note(r, "cuda.clock_lead_ns", fit->lead_ns);
	if (fit->n_tails)
		note(r, "cuda.clock_tail_ns", fit->tail_ns);
	if (fit->n_leads && fit->n_tails)
		note(r, "cuda.clock_error_ns", late > early ? late : early);
}
