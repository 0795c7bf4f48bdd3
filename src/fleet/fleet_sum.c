/*
 * fleet_sum - entries to jobs and causes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "fleet/fleet.h"

/* An entry by job and time. */
struct place {
	const struct lull_fleet_entry *entry;
	u32 ix;
};

static int by_job_and_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->entry->job, y->entry->job);

	if (order)
		return order;
	if (x->entry->start_utc_ns != y->entry->start_utc_ns)
		return x->entry->start_utc_ns < y->entry->start_utc_ns ? -1 : 1;
	return x->ix < y->ix ? -1 : x->ix > y->ix;
}

static u32 count_hosts(const struct place *at, size_t n)
{
	struct lull_map hosts;
	u32 n_hosts;

	lull_map_init(&hosts);
	for (size_t i = 0; i < n; i++)
		lull_map_add(&hosts, lull_hash(at[i].entry->host, strlen(at[i].entry->host)), NULL);
	n_hosts = (u32)hosts.n;
	lull_map_release(&hosts);
	return n_hosts;
}

static u64 sum_of(const struct lull_fleet_entry *e)
{
	u64 sum_ns = 0;

	for (int i = 0; i < LULL_N_CAUSES; i++)
		sum_ns += e->lost_ns[i];
	return sum_ns;
}

/* The first cause of the reports that lost most, together; -1 if none has one. */
static int cause_of(const struct place *at, size_t n)
{
	u64 weight[LULL_N_CAUSES] = { 0 };
	int most = -1;

	for (size_t i = 0; i < n; i++)
		if (at[i].entry->first >= 0)
			weight[at[i].entry->first] += sum_of(at[i].entry) + 1;
	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (weight[i] && (most < 0 || weight[i] > weight[most]))
			most = i;
	return most;
}

/* Which cause it is, where to see it, and since when it comes first. */
static void judge(struct lull_fleet_job *job, const struct place *at, size_t n)
{
	size_t worst = 0, from = n;

	job->cause = cause_of(at, n);
	for (size_t i = 0; i < n; i++)
		if (at[i].entry->first == job->cause &&
		    (at[worst].entry->first != job->cause ||
		     sum_of(at[i].entry) > sum_of(at[worst].entry)))
			worst = i;
	job->worst = at[worst].ix;
	job->latest = -1;
	for (size_t i = 0; i < n; i++)
		if (at[i].entry->state == LULL_FLEET_GOOD)
			job->latest = (int)at[i].ix;
	if (job->cause < 0)
		return;
	/* Reports that say nothing do not end what was before and is after them. */
	for (size_t i = n; i-- > 0;) {
		if (at[i].entry->first == job->cause)
			from = i;
		else if (at[i].entry->state == LULL_FLEET_GOOD)
			break;
	}
	job->since_utc_ns = from < n ? at[from].entry->start_utc_ns : 0;
}

static void add_job(struct lull_fleet *f, const struct place *at, size_t n)
{
	struct lull_fleet_job *job = lull_vec_push(&f->jobs);

	*job = (struct lull_fleet_job){ .name = at[0].entry->job,
					.host = at[0].entry->host,
					.n_reports = (u32)n,
					.n_hosts = count_hosts(at, n) };
	for (size_t i = 0; i < n; i++) {
		job->gpu_ns += at[i].entry->gpu_ns;
		for (int k = 0; k < LULL_N_CAUSES; k++) {
			job->by_cause_ns[k] += at[i].entry->lost_ns[k];
			job->lost_ns += at[i].entry->lost_ns[k];
		}
	}
	judge(job, at, n);
	f->gpu_ns += job->gpu_ns;
	f->lost_ns += job->lost_ns;
}

static int by_loss(const void *a, const void *b)
{
	const struct lull_fleet_job *x = a, *y = b;

	if (x->lost_ns != y->lost_ns)
		return x->lost_ns > y->lost_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_cause_loss(const void *a, const void *b)
{
	const struct lull_fleet_cause *x = a, *y = b;

	if (x->lost_ns != y->lost_ns)
		return x->lost_ns > y->lost_ns ? -1 : 1;
	return x->cause - y->cause;
}

static void sum_causes(struct lull_fleet *f)
{
	const struct lull_fleet_job *jobs = f->jobs.at;

	for (int k = 0; k < LULL_N_CAUSES; k++) {
		struct lull_fleet_cause c = { .cause = k };
		u64 worst_ns = 0;

		for (u32 i = 0; i < f->jobs.n; i++) {
			u64 ns = jobs[i].by_cause_ns[k];

			c.lost_ns += ns;
			c.n_jobs += ns > 0;
			if (ns > worst_ns) {
				worst_ns = ns;
				c.worst_job = i;
			}
		}
		if (c.lost_ns)
			lull_vec_add(&f->causes, &c, 1);
	}
	if (f->causes.n)
		lull_sort(f->causes.at, f->causes.n, sizeof(struct lull_fleet_cause),
			  by_cause_loss);
}

void lull_fleet_sum(struct lull_fleet *f)
{
	const struct lull_fleet_entry *all = f->entries.at;
	struct place *at = lull_alloc(f->entries.n + 1, sizeof(*at));
	size_t n = 0;

	for (size_t i = 0; i < f->entries.n; i++) {
		f->n_by_state[all[i].state]++;
		/* What was cut off may still say something; what nothing is known of has no job. */
		if (*all[i].job)
			at[n++] = (struct place){ &all[i], (u32)i };
	}
	if (n)
		lull_sort(at, n, sizeof(*at), by_job_and_time);
	f->n_hosts = count_hosts(at, n);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && strcmp(at[end].entry->job, at[i].entry->job) == 0; end++)
			;
		add_job(f, at + i, end - i);
	}
	free(at);
	if (f->jobs.n)
		lull_sort(f->jobs.at, f->jobs.n, sizeof(struct lull_fleet_job), by_loss);
	sum_causes(f);
}
