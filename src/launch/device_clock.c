#include "launch/device_clock.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Calls that are remembered, by the low bits of their number; CUPTI delivers within 200 ms. */
#define N_CALLS 65536u

struct lull_device_calls {
	u32 correlation[N_CALLS];
	u64 start_ns[N_CALLS];
};

void lull_device_clock_call(struct lull_process *p, u32 correlation, u64 start_ns)
{
	if (!p->device_calls)
		p->device_calls = lull_alloc(1, sizeof(*p->device_calls));
	p->device_calls->correlation[correlation % N_CALLS] = correlation;
	p->device_calls->start_ns[correlation % N_CALLS] = start_ns;
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

static void note_end(const struct lull_device_work *work)
{
	struct lull_gpu_stream *all = work->process->streams.at;

	for (size_t i = 0; i < work->process->streams.n; i++)
		if (all[i].lane == work->lane && work->correlation >= all[i].last_correlation) {
			all[i].last_correlation = work->correlation;
			all[i].last_end_ns = work->row.start_ns + work->dur_ns;
		}
}

static void add(struct lull_recording *r, struct lull_device_work *work)
{
	u64 call_ns;

	if (work->table == LULL_TABLE_kernel)
		note_end(work);
	if (find_call(work, &call_ns)) {
		learn(&r->device_clock.lead_ns, &r->device_clock.n_leads,
		      (i64)(work->row.start_ns - call_ns));
		if (work->row.start_ns < call_ns) {
			lull_recording_issue(r, LULL_ISSUE_clock_corrected, work->process, 1, NULL);
			work->row.start_ns = call_ns;
		}
	}
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

void lull_device_clock_wait(struct lull_recording *r, struct lull_process *p,
			    const struct lull_device_wait *wait)
{
	const struct lull_gpu_stream *all = p->streams.at;

	for (size_t i = 0; wait->is_host && i < p->streams.n; i++) {
		if ((wait->lane && all[i].lane != wait->lane) || !all[i].last_end_ns ||
		    all[i].last_correlation >= wait->correlation)
			continue;
		learn(&r->device_clock.tail_ns, &r->device_clock.n_tails,
		      (i64)(wait->end_ns - all[i].last_end_ns));
	}
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
	i64 late = llabs(fit->lead_ns), early = llabs(fit->tail_ns);

	if (fit->n_leads)
		note(r, "cuda.clock_lead_ns", fit->lead_ns);
	if (fit->n_tails)
		note(r, "cuda.clock_tail_ns", fit->tail_ns);
	if (fit->n_leads && fit->n_tails)
		note(r, "cuda.clock_error_ns", late > early ? late : early);
}
