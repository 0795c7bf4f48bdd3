/*
 * ranks - compare the ranks of a job in one recording.
 *
 * A collective ends everywhere at about the same time, so the rank that arrives last has the
 * shortest one. The sums of each step are compared, since collectives of a step follow each other
 * in the same order on all ranks.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

/* Sums of the collectives of each steady step. */
static u64 *sum_collectives(const struct lull_subject *s, u32 n)
{
	u64 *sums = lull_alloc(n + 1, sizeof(*sums));

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		u32 step = unit->round - s->rounds.first_steady;

		if (unit->kind == LULL_UNIT_COLLECTIVE && unit->round != LULL_NONE &&
		    unit->round >= s->rounds.first_steady && step < n)
			sums[step] += unit->end_ns - unit->begin_ns;
	}
	return sums;
}

/* Kernels of a step that are no collectives. */
static f64 compute_of(const struct lull_subject *s)
{
	u32 n = lull_rounds_n_steady(&s->rounds);
	u64 sum = 0;

	for (int i = 0; i < LULL_N_KERNEL_CLASSES; i++)
		sum += i == LULL_KERNEL_COLLECTIVE ? 0 : s->class_ns[i];
	return n ? (f64)sum / n : 0;
}

static void find_last(struct lull_subject *subjects, u32 n, u32 n_steps, u64 *const *sums)
{
	u32 *n_last = lull_alloc(n, sizeof(*n_last)), best = 0;

	for (u32 step = 0; step < n_steps; step++) {
		u32 last = 0;

		for (u32 i = 1; i < n; i++)
			last = sums[i][step] < sums[last][step] ? i : last;
		n_last[last]++;
	}
	for (u32 i = 1; i < n; i++)
		best = n_last[i] > n_last[best] ? i : best;
	for (u32 i = 0; i < n && (f64)n_last[best] >= LULL_T(last_rank) * n_steps; i++) {
		u64 own = 0, shortest = 0;

		for (u32 step = 0; step < n_steps; step++) {
			own += sums[i][step];
			shortest += sums[best][step];
		}
		if (i == best || !own ||
		    (f64)(own - (shortest < own ? shortest : own)) < LULL_T(rank_waits) * (f64)own)
			continue;
		subjects[i].ranks.last_rank = best;
		subjects[i].ranks.wait_share = (f64)(own - shortest) / (f64)own;
	}
	free(n_last);
}

/* Stages that mostly send to each other, one of which has more to do. */
static void find_pipeline(struct lull_subject *subjects, u32 n)
{
	f64 most = 0;

	for (u32 i = 0; i < n; i++)
		most = compute_of(&subjects[i]) > most ? compute_of(&subjects[i]) : most;
	for (u32 i = 0; i < n; i++) {
		struct lull_subject *s = &subjects[i];
		f64 own = compute_of(s);

		if (s->peer_ns * 2 <= s->collective_ns || own * LULL_T(busier_stage) > most)
			continue;
		s->ranks.is_pipeline = true;
		s->ranks.busiest_share = own > 0 ? most / own : 0;
		if (s->ranks.wait_share < 1 - own / most)
			s->ranks.wait_share = 1 - own / most;
	}
}

void lull_why_ranks(struct lull_subject *subjects, u32 n)
{
	u32 n_steps = UINT32_MAX;
	u64 **sums;

	for (u32 i = 0; i < n; i++) {
		u32 own = lull_rounds_n_steady(&subjects[i].rounds);

		subjects[i].ranks.n_ranks = n;
		n_steps = own < n_steps ? own : n_steps;
		if (!subjects[i].collective_ns)
			return;
	}
	if (n < 2 || !n_steps)
		return;
	sums = lull_alloc(n, sizeof(*sums));
	for (u32 i = 0; i < n; i++)
		sums[i] = sum_collectives(&subjects[i], n_steps);
	find_last(subjects, n, n_steps, sums);
	find_pipeline(subjects, n);
	for (u32 i = 0; i < n; i++)
		free(sums[i]);
	free(sums);
}
