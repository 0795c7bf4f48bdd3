/*
 * meet - when each collective had its last rank.
 *
 * Every process adds up what the ranks of its reports did; the parts are gathered and added. A
 * collective that only one rank has is no meeting.
 */
#include <stdlib.h>
#include <string.h>

#include "job/job_int.h"

/* More collectives than this are thinned out: 48 bytes each, and 16 to 32 for the map. */
#define MAX_MEETINGS 8000000u

i64 lull_job_came_ns(const struct lull_job *job, const struct lull_job_rank *rank,
		     const struct lull_exchange *x)
{
	/*
	 * Without clocks: all ranks leave together, so the last rank to arrive has the shortest
	 * collective.
	 */
	if (job->clocks >= LULL_CLOCKS_DURATIONS)
		return -(i64)(x->end_ns - x->start_ns);
	return lull_job_time(rank, x->start_ns);
}

i64 lull_job_left_ns(const struct lull_job *job, const struct lull_job_rank *rank,
		     const struct lull_exchange *x)
{
	if (job->clocks >= LULL_CLOCKS_DURATIONS)
		return 0;
	return lull_job_time(rank, x->end_ns);
}

/* Keep those whose lot is not above the limit. */
static void drop_above(struct lull_job_meetings *m)
{
	struct lull_job_meeting *all = m->all.at;
	size_t n = 0;

	lull_map_release(&m->by_key);
	lull_map_init(&m->by_key);
	for (size_t i = 0; i < m->all.n; i++) {
		if (all[i].lot > m->limit)
			continue;
		*lull_map_add(&m->by_key, all[i].key, NULL) = (u32)n;
		all[n++] = all[i];
	}
	m->all.n = n;
}

static struct lull_job_meeting *find_or_add(struct lull_job_meetings *m, u64 key)
{
	struct lull_job_meeting *meeting;
	bool is_new;
	u32 *ix = lull_map_add(&m->by_key, key, &is_new);

	if (is_new) {
		*ix = (u32)m->all.n;
		meeting = lull_vec_push(&m->all);
		meeting->key = key;
		meeting->last_ns = INT64_MIN;
	}
	return lull_vec_get(&m->all, *ix);
}

static void combine(struct lull_job_meetings *m, const struct lull_job_meeting *from)
{
	struct lull_job_meeting *to;

	if (from->lot > m->limit)
		return;
	to = find_or_add(m, from->key);
	to->lot = from->lot;
	to->last_ns = from->last_ns > to->last_ns ? from->last_ns : to->last_ns;
	to->sum_ns += from->sum_ns;
	to->is_uneven |= from->is_uneven || (to->n && to->size_bytes != from->size_bytes);
	to->size_bytes = from->size_bytes > to->size_bytes ? from->size_bytes : to->size_bytes;
	to->n += from->n;
	/* The smallest lots stay, so that all processes keep the same. */
	while (m->all.n > m->max) {
		m->limit >>= 1;
		drop_above(m);
	}
}

static void add_rank(struct lull_job *job, struct lull_job_rank *rank, struct lull_job_meetings *m)
{
	struct lull_reader *r = lull_job_reader(job, rank);
	const struct lull_exchange *all;
	struct lull_exchanges x;

	if (!r)
		return;
	lull_exchanges_init(&x, r);
	all = x.all.at;
	for (size_t i = 0; i < x.all.n; i++) {
		i64 came_ns = lull_job_came_ns(job, rank, &all[i]);
		struct lull_job_meeting own = {
			all[i].key, all[i].lot, came_ns, came_ns, all[i].size_bytes, 1, 0,
		};

		combine(m, &own);
	}
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

static int gather(struct lull_job *job, struct lull_job_meetings *m, struct lull_err *err)
{
	struct lull_team_parts parts;
	int rc;

	if (job->team.size == 1)
		return LULL_OK;
	rc = lull_team_gather(&job->team, m->all.at, m->all.n * sizeof(struct lull_job_meeting),
			      &parts, err);
	for (u32 i = 0; !rc && i < job->team.size; i++) {
		const struct lull_job_meeting *at = (const void *)parts.at[i];
		u64 n = parts.len[i] / sizeof(*at);

		for (u64 k = 0; i != job->team.rank && k < n; k++)
			combine(m, &at[k]);
	}
	lull_team_parts_release(&parts);
	return rc;
}

/* What one process has left out, all leave out. */
static int agree(struct lull_job *job, struct lull_job_meetings *m, struct lull_err *err)
{
	struct lull_team_parts parts;
	int rc = lull_team_gather(&job->team, &m->limit, sizeof(m->limit), &parts, err);

	for (u32 i = 0; !rc && i < job->team.size; i++) {
		u64 limit;

		memcpy(&limit, parts.at[i], sizeof(limit));
		m->limit = limit < m->limit ? limit : m->limit;
	}
	lull_team_parts_release(&parts);
	drop_above(m);
	return rc;
}

int lull_job_meet(struct lull_job *job, struct lull_job_meetings *m, struct lull_err *err)
{
	struct lull_job_rank *all = job->ranks.at;
	const struct lull_job_meeting *at;
	int rc;

	lull_map_init(&m->by_key);
	lull_vec_init(&m->all, sizeof(struct lull_job_meeting));
	m->limit = UINT64_MAX;
	m->max = job->options.max_meetings ? job->options.max_meetings : MAX_MEETINGS;
	for (size_t i = 0; i < job->ranks.n; i++)
		if (all[i].owner == job->team.rank)
			add_rank(job, &all[i], m);
	rc = agree(job, m, err) || gather(job, m, err) ? err->code : LULL_OK;
	at = m->all.at;
	for (size_t i = 0; i < m->all.n; i++) {
		job->n_met += at[i].n > 1;
		job->n_mismatched += at[i].n > 1 && at[i].is_uneven;
	}
	job->thinned = 1;
	for (u64 limit = m->limit; limit < UINT64_MAX; limit = limit << 1 | 1)
		job->thinned <<= 1;
	return rc;
}

void lull_job_meetings_release(struct lull_job_meetings *m)
{
	lull_map_release(&m->by_key);
	lull_vec_release(&m->all);
}

const struct lull_job_meeting *lull_job_meeting(const struct lull_job_meetings *m, u64 key)
{
	const u32 *ix = lull_map_find(&m->by_key, key);
	const struct lull_job_meeting *meeting = ix ? lull_vec_get(&m->all, *ix) : NULL;

	return meeting && meeting->n > 1 ? meeting : NULL;
}
