/*
 * fleet_examine - what one report says: `lull why` over all its devices.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cause/why.h"
#include "fleet/fleet.h"
#include "report/duty_windows.h"
#include "request/requests.h"
#include "request/summary.h"
#include "trace/reader.h"

static void say(struct lull_fleet_entry *e, enum lull_fleet_state state, const char *trouble)
{
	e->state = state;
	free(e->trouble);
	e->trouble = lull_strdup(trouble);
}

static void take_facts(struct lull_fleet_entry *e, struct lull_reader *r)
{
	const char *job = lull_reader_fact(r, "job"), *host = lull_reader_fact(r, "host"),
		   *rank = lull_reader_fact(r, "rank");

	free(e->job);
	free(e->host);
	e->job = lull_strdup(*job ? job : lull_reader_fact(r, "recording.command"));
	e->host = lull_strdup(*host ? host : lull_reader_fact(r, "host.name"));
	e->rank = *rank ? strtoll(rank, NULL, 10) : -1;
	e->start_utc_ns = lull_reader_info(r)->epoch_utc_ns;
	e->elapsed_ns = (u64)(strtod(lull_reader_fact(r, "recording.duration"), NULL) * 1e9);
}

/* How many times as much as was recorded the report stands for. */
static f64 scale_of(struct lull_fleet_entry *e, struct lull_reader *r)
{
	struct lull_duty_windows w;
	f64 scale = 1;

	if (lull_duty_windows_read(&w, r)) {
		e->elapsed_ns = w.elapsed_ns;
		scale = w.n_all_steps ? (f64)w.n_all_steps / (f64)w.n_steps
				      : (f64)w.elapsed_ns / (f64)(w.recorded_ns + 1);
	}
	lull_duty_windows_release(&w);
	return scale;
}

/* Processes share devices: each device counts once. */
static u32 count_gpus(const struct lull_why *why)
{
	u32 n = 0;

	for (u32 i = 0; i < why->n_subjects; i++) {
		u32 k = 0;

		while (k < i && why->subjects[k].device != why->subjects[i].device)
			k++;
		n += k == i;
	}
	return n;
}

static u64 scaled(u64 ns, f64 scale)
{
	return scale > 1 ? (u64)((f64)ns * scale) : ns;
}

static void take_answer(struct lull_fleet_entry *e, const struct lull_why *why, f64 scale)
{
	const struct lull_finding *first = lull_why_first(why);

	e->n_gpus = count_gpus(why);
	e->n_steps = scaled(lull_why_n_steps(why), scale);
	e->step_ns = (u64)why->step_ns;
	e->first = first ? (int)first->cause : -1;
	for (u32 i = 0; i < why->n_subjects; i++) {
		const struct lull_subject *s = &why->subjects[i];

		e->gpu_ns += scaled(s->window_ns, scale);
		for (int k = 0; k < LULL_N_CAUSES; k++)
			e->lost_ns[k] += scaled(s->cost_ns[k], scale);
	}
	say(e, *why->cannot ? LULL_FLEET_NO_ANSWER : LULL_FLEET_GOOD, why->cannot);
}

static void take_requests(struct lull_fleet_entry *e, struct lull_reader *r)
{
	struct lull_request_summary summary;
	struct lull_requests requests;
	struct lull_err ignored;

	if (lull_requests_init(&requests, r, LULL_SPAN_ALL, 0, &ignored) == 0 &&
	    lull_requests_keep_answered(&requests, &ignored) == 0) {
		lull_request_summary_init(&summary, &requests);
		e->n_requests = summary.latency.n;
		e->p99_ns = summary.latency.p99_ns;
		lull_request_summary_release(&summary);
	}
	lull_requests_release(&requests);
}

void lull_fleet_examine(struct lull_fleet_entry *e, const char *path)
{
	struct lull_reader *r;
	struct lull_why why;
	struct lull_err err;

	e->first = -1;
	e->rank = -1;
	e->job = lull_strdup("");
	e->host = lull_strdup("");
	if (lull_reader_open(&r, path, &err)) {
		say(e, LULL_FLEET_DAMAGED, err.msg);
		return;
	}
	take_facts(e, r);
	take_requests(e, r);
	if (lull_why_run(&why, r, NULL, &err))
		say(e, err.code == LULL_E_NOT_FOUND ? LULL_FLEET_NO_ANSWER : LULL_FLEET_DAMAGED,
		    err.msg);
	else
		take_answer(e, &why, scale_of(e, r));
	lull_why_release(&why);
	if (lull_reader_n_damaged(r))
		say(e, LULL_FLEET_DAMAGED,
		    "parts of the file are damaged; lull stats -r losses "
		    "says which");
	else if (!lull_reader_is_sealed(r))
		say(e, LULL_FLEET_DAMAGED, "the file is cut off; lull recover makes a whole one");
	lull_reader_close(r);
}
