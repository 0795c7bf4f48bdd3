/*
 * group - ranks that behave alike, so that ten thousand of them read like five.
 *
 * A rank is what its steps are made of: shares of computing, waiting, moving bytes, bubbles, copies
 * and idleness; whether it is late; and its stage. Ranks join the first group that is as near as
 * the tolerance in every share; the tolerance grows until there are few groups. By rank, so that
 * the result does not depend on who read what.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"

#define MAX_GROUPS	5u
#define FIRST_TOLERANCE 0.05
#define N_SHARES	6

struct form {
	f64 share[N_SHARES];
	bool is_late;
};

static struct form form_of(const struct lull_job_rank *rank, bool is_late)
{
	f64 all = rank->window_ns ? (f64)rank->window_ns : 1;

	return (struct form){ { (f64)rank->compute_ns / all, (f64)rank->wait_ns / all,
				(f64)rank->transfer_ns / all, (f64)rank->bubble_ns / all,
				(f64)rank->copy_ns / all, (f64)rank->idle_ns / all },
			      is_late };
}

static bool is_near(const struct form *a, const struct form *b, f64 tolerance)
{
	if (a->is_late != b->is_late)
		return false;
	for (int i = 0; i < N_SHARES; i++)
		if (fabs(a->share[i] - b->share[i]) > tolerance)
			return false;
	return true;
}

/* Put ranks into groups; their number. */
static u32 cluster(struct lull_job *job, const struct form *forms, f64 tolerance)
{
	struct lull_job_rank *all = job->ranks.at;
	u32 leaders[64], n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		u32 g = 0;

		while (g < n && !is_near(&forms[leaders[g]], &forms[i], tolerance))
			g++;
		if (g == n && n == LULL_COUNT_OF(leaders))
			return n + 1;
		if (g == n)
			leaders[n++] = (u32)i;
		all[i].group = g;
	}
	return n;
}

static i32 common_cause(const struct lull_job *job, u32 group)
{
	const struct lull_job_rank *all = job->ranks.at;
	u32 counts[LULL_N_CAUSES] = { 0 };
	i32 best = -1;

	for (size_t i = 0; i < job->ranks.n; i++)
		if (all[i].group == group && all[i].first >= 0)
			counts[all[i].first]++;
	for (int k = 0; k < LULL_N_CAUSES; k++)
		if (counts[k] && (best < 0 || counts[k] > counts[best]))
			best = k;
	return best;
}

struct numbered {
	struct lull_job_group group;
	u32 number;
};

static int by_size(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->group.n != y->group.n)
		return x->group.n < y->group.n ? 1 : -1;
	return (x->group.first_ix > y->group.first_ix) - (x->group.first_ix < y->group.first_ix);
}

static void describe(struct lull_job *job, const struct form *forms, u32 n)
{
	struct numbered *groups = lull_alloc(n + 1, sizeof(*groups));
	struct lull_job_rank *all = job->ranks.at;
	u32 *order = lull_alloc(n + 1, sizeof(*order));

	for (u32 g = 0; g < n; g++) {
		groups[g].number = g;
		groups[g].group.cause = common_cause(job, g);
	}
	for (size_t i = 0; i < job->ranks.n; i++) {
		struct lull_job_group *g = &groups[all[i].group].group;
		const f64 *s = forms[i].share;

		if (!g->n++)
			g->first_ix = (u32)i;
		g->compute += s[0];
		g->wait += s[1];
		g->transfer += s[2];
		g->bubble += s[3];
		g->copy += s[4];
		g->idle += s[5];
		g->late += all[i].window_ns ? (f64)all[i].late_ns / (f64)all[i].window_ns : 0;
		g->is_late |= forms[i].is_late;
	}
	lull_sort(groups, n, sizeof(*groups), by_size);
	for (u32 g = 0; g < n; g++) {
		struct lull_job_group *to = &groups[g].group;
		f64 *parts[] = { &to->compute, &to->wait, &to->transfer, &to->bubble,
				 &to->copy,    &to->idle, &to->late };

		for (size_t k = 0; k < LULL_COUNT_OF(parts); k++)
			*parts[k] /= to->n ? to->n : 1;
		order[groups[g].number] = g;
		lull_vec_add(&job->groups, to, 1);
	}
	for (size_t i = 0; i < job->ranks.n; i++)
		all[i].group = order[all[i].group];
	free(order);
	free(groups);
}

void lull_job_group(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	const struct lull_job_straggler *late = job->stragglers.at;
	struct form *forms = lull_alloc(job->ranks.n + 1, sizeof(*forms));
	f64 tolerance = FIRST_TOLERANCE;
	u32 n;

	for (size_t i = 0; i < job->ranks.n; i++)
		forms[i] = form_of(&all[i], false);
	for (size_t i = 0; i < job->stragglers.n; i++)
		forms[late[i].rank_ix].is_late = true;
	while ((n = cluster(job, forms, tolerance)) > MAX_GROUPS && tolerance < 1)
		tolerance *= 1.5;
	describe(job, forms, n);
	free(forms);
}
