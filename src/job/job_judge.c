/*
 * job_judge - which rank is late, since when and why; and what holds the job up in all.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "text/term.h"
#include "job/job_int.h"

/* A rank is late if it comes this part of a step after the others, and this much at least. */
#define LATE_SHARE 0.03
#define LATE_NS	   20000.0
/* And this many times the usual variation between steps. */
#define LATE_NOISE 3.0
/* And in this part of the steps since it began. */
#define LATE_STEPS 0.75
/* Fewer steps, or a smaller part of them, are chance. */
#define MIN_STEPS      3u
#define MIN_PART       4u
#define MAX_STRAGGLERS 64u
/* Its own cause has to explain this part of it. */
#define EXPLAINED 0.25
/* What costs less of the step is not what holds the job up. */
#define WORTH 0.05
/* A stage that computes so much more than the others. */
#define BUSIER 1.3

/* ---- steps of the job ---- */

static const struct lull_job_rank *most_steps(const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at, *best = all;

	for (size_t i = 1; i < job->ranks.n; i++)
		best = all[i].n_steps > best->n_steps ? &all[i] : best;
	return best;
}

/* The step of the reference that ended nearest to this moment. */
static u32 nearest(const struct lull_job_step *ref, u32 n, i64 at_ns)
{
	u32 low = 0, high = n;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (ref[mid].end_ns < at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == n || (low && at_ns - ref[low - 1].end_ns < ref[low].end_ns - at_ns))
		low--;
	return (u64)llabs(at_ns - ref[low].end_ns) <= ref[low].dur_ns ? low : UINT32_MAX;
}

void lull_job_number_steps(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at, *best = most_steps(job);
	bool has_clocks = job->clocks < LULL_CLOCKS_DURATIONS;
	const struct lull_job_step *ref;
	u32 n_ref, n;

	ref = lull_job_steps(job, best, &n_ref);
	job->n_steps = n_ref;
	job->first_step = best->first_step;
	for (size_t i = 0; i < job->ranks.n; i++) {
		struct lull_job_step *steps = (void *)lull_job_steps(job, &all[i], &n);

		for (u32 k = 0; k < n; k++) {
			u32 round = steps[k].round - best->first_step;

			if (has_clocks)
				steps[k].number = nearest(ref, n_ref, steps[k].end_ns);
			else
				steps[k].number = round < n_ref ? round : UINT32_MAX;
		}
	}
}

/* ---- late ranks ---- */

/* Lateness by rank and step; NAN where a rank has no such step, or no collective in it. */
static float *lateness(const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	float *late = lull_alloc(job->ranks.n * job->n_steps + 1, sizeof(*late));
	u32 n;

	for (size_t i = 0; i < job->ranks.n * job->n_steps; i++)
		late[i] = NAN;
	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_step *steps = lull_job_steps(job, &all[i], &n);

		for (u32 k = 0; k < n; k++)
			if (steps[k].number < job->n_steps && steps[k].n_met)
				late[i * job->n_steps + steps[k].number] = (float)steps[k].late_ns;
	}
	return late;
}

/*
 * Stages of a pipeline end at different moments by nature: ranks are compared with those of the
 * same stage.
 */
static void level_stages(const struct lull_job *job, float *late)
{
	const struct lull_job_rank *all = job->ranks.at;
	f64 *room = lull_alloc(job->ranks.n + 1, sizeof(*room));

	for (u32 step = 0; step < job->n_steps; step++) {
		for (size_t stage = 0; stage < job->stages.n; stage++) {
			size_t n = 0;
			f64 median;

			for (size_t i = 0; i < job->ranks.n; i++)
				if (all[i].stage == (i32)stage &&
				    !isnan(late[i * job->n_steps + step]))
					room[n++] = late[i * job->n_steps + step];
			median = lull_job_median(room, n);
			for (size_t i = 0; i < job->ranks.n; i++)
				if (all[i].stage == (i32)stage)
					late[i * job->n_steps + step] -= (float)median;
		}
	}
	free(room);
}

/*
 * How much a rank differs from step to step without a reason: the median of the changes, which one
 * onset does not move; then the median over the ranks, which a few late ones do not move.
 */
static f64 noise_of(const struct lull_job *job, const float *late)
{
	f64 *room = lull_alloc(job->n_steps + 1, sizeof(*room));
	f64 *ranks = lull_alloc(job->ranks.n + 1, sizeof(*ranks)), noise;
	size_t n_ranks = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		const float *at = late + i * job->n_steps;
		size_t n = 0;

		for (u32 k = 1; k < job->n_steps; k++)
			if (!isnan(at[k]) && !isnan(at[k - 1]))
				room[n++] = fabs((f64)at[k] - (f64)at[k - 1]);
		if (n)
			ranks[n_ranks++] = lull_job_median(room, n);
	}
	noise = lull_job_median(ranks, n_ranks);
	free(ranks);
	free(room);
	return noise;
}

/* Where the mean of a series changes most; 0 if it does not. */
static u32 find_onset(const f64 *at, u32 n)
{
	f64 sum = 0, before = 0, best_score = 0;
	u32 best = 0, least = n / MIN_PART > MIN_STEPS ? n / MIN_PART : MIN_STEPS;

	for (u32 i = 0; i < n; i++)
		sum += at[i];
	for (u32 k = 1; k + least <= n; k++) {
		f64 mean_before, mean_after, score;

		before += at[k - 1];
		mean_before = before / k;
		mean_after = (sum - before) / (n - k);
		score = (mean_after - mean_before) * sqrt((f64)k * (n - k) / n);
		if (score > best_score && mean_before < mean_after / 2) {
			best_score = score;
			best = k;
		}
	}
	return best;
}

/* Judge the series of one rank. */
static bool judge_rank(const struct lull_job *job, const float *late, f64 limit,
		       struct lull_job_straggler *s)
{
	f64 *at = lull_alloc(job->n_steps + 1, sizeof(*at));
	u32 *number = lull_alloc(job->n_steps + 1, sizeof(*number));
	u32 n = 0, onset, n_late = 0;
	bool is_late = false;

	for (u32 i = 0; i < job->n_steps; i++) {
		if (isnan(late[i]))
			continue;
		number[n] = i;
		at[n++] = late[i];
	}
	if (n >= MIN_STEPS) {
		onset = find_onset(at, n);
		for (u32 i = onset; i < n; i++)
			n_late += at[i] > limit / 2;
		s->since = number[onset] + job->first_step;
		s->is_always = !onset;
		s->share = (f64)n_late / (n - onset);
		s->late_ns = lull_job_median(at + onset, n - onset);
		is_late = s->late_ns >= limit && s->share >= LATE_STEPS;
	}
	free(at);
	free(number);
	return is_late;
}

static int by_lateness(const void *a, const void *b)
{
	const struct lull_job_straggler *x = a, *y = b;

	if (x->late_ns != y->late_ns)
		return x->late_ns < y->late_ns ? 1 : -1;
	return (x->rank_ix > y->rank_ix) - (x->rank_ix < y->rank_ix);
}

static bool is_straggler(const struct lull_job *job, size_t rank_ix)
{
	const struct lull_job_straggler *all = job->stragglers.at;

	for (size_t i = 0; i < job->stragglers.n; i++)
		if (all[i].rank_ix == rank_ix)
			return true;
	return false;
}

/* ---- its own cause ---- */

static bool is_of_others(int cause)
{
	return lull_causes[cause]->ranks != LULL_RANKS_NOTHING;
}

static f64 a_step(const struct lull_job_rank *rank, u64 ns)
{
	return rank->n_steps ? (f64)ns / rank->n_steps : 0;
}

/* Median over the ranks that are not late of what `off` says, a step. */
static f64 usual(const struct lull_job *job, size_t off, f64 *room)
{
	const struct lull_job_rank *all = job->ranks.at;
	size_t n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		u64 ns;

		if (!all[i].n_steps || is_straggler(job, i))
			continue;
		memcpy(&ns, (const char *)&all[i] + off, sizeof(ns));
		room[n++] = a_step(&all[i], ns);
	}
	return lull_job_median(room, n);
}

static const char *evidence_of(const struct lull_job_rank *rank, int cause)
{
	for (u32 i = 0; i < LULL_JOB_EVIDENCE; i++)
		if (rank->evidence[i].cause == cause)
			return rank->evidence[i].text;
	return NULL;
}

/* The cause for which the kernels of one rank take longer, with what proves it if that is known. */
static i32 slow_kernels(const struct lull_job_rank *rank, const char **text)
{
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		*text = lull_causes[i]->slows_kernels ? evidence_of(rank, i) : NULL;
		if (*text)
			return i;
	}
	return (i32)lull_cause_default(LULL_CAUSE_BUSY);
}

static void explain(const struct lull_job *job, struct lull_job_straggler *s, const f64 *usual_ns,
		    f64 usual_compute_ns)
{
	const struct lull_job_rank *rank = lull_vec_get(&job->ranks, s->rank_ix);
	f64 compute_ns = a_step(rank, rank->compute_ns) - usual_compute_ns;
	const char *text;

	s->cause = -1;
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		f64 excess_ns = a_step(rank, rank->cost_ns[i]) - usual_ns[i];

		if (is_of_others(i) || excess_ns <= s->excess_ns)
			continue;
		s->cause = i;
		s->excess_ns = excess_ns;
	}
	if (compute_ns > s->excess_ns) {
		s->cause = slow_kernels(rank, &text);
		s->excess_ns = compute_ns;
		snprintf(s->evidence, sizeof(s->evidence),
			 "its kernels take %.2f ms/step, those of other ranks %.2f%s%.80s",
			 a_step(rank, rank->compute_ns) / 1e6, usual_compute_ns / 1e6,
			 text && *text ? "; " : "", text ? text : "");
	} else if (s->cause >= 0) {
		text = evidence_of(rank, s->cause);
		snprintf(s->evidence, sizeof(s->evidence), "%s", text ? text : "");
	}
	if (s->excess_ns < EXPLAINED * s->late_ns * (job->n_steps ? 1 : 0) && s->cause >= 0) {
		s->cause = -1;
		*s->evidence = '\0';
	}
}

void lull_job_find_stragglers(struct lull_job *job)
{
	f64 usual_ns[LULL_N_CAUSES], usual_compute_ns, limit, *room;
	float *late = lateness(job);
	f64 step_ns = most_steps(job)->step_ns;

	if (job->stages.n > 1)
		level_stages(job, late);
	limit = fmax(fmax(LATE_NS, LATE_SHARE * step_ns), LATE_NOISE * noise_of(job, late));
	for (size_t i = 0; i < job->ranks.n && job->n_met; i++) {
		struct lull_job_straggler s = { .rank_ix = (u32)i };

		if (judge_rank(job, late + i * job->n_steps, limit, &s))
			lull_vec_add(&job->stragglers, &s, 1);
	}
	if (job->stragglers.n)
		lull_sort(job->stragglers.at, job->stragglers.n, sizeof(struct lull_job_straggler),
			  by_lateness);
	if (job->stragglers.n > MAX_STRAGGLERS)
		job->stragglers.n = MAX_STRAGGLERS;
	room = lull_alloc(job->ranks.n + 1, sizeof(*room));
	for (int i = 0; i < LULL_N_CAUSES; i++)
		usual_ns[i] = usual(
			job, offsetof(struct lull_job_rank, cost_ns) + (size_t)i * sizeof(u64),
			room);
	usual_compute_ns = usual(job, offsetof(struct lull_job_rank, compute_ns), room);
	for (size_t i = 0; i < job->stragglers.n; i++)
		explain(job, lull_vec_get(&job->stragglers, i), usual_ns, usual_compute_ns);
	free(room);
	free(late);
}

/* ---- the fix ---- */

static const char *fix_of(const struct lull_job_rank *rank, int cause)
{
	for (u32 i = 0; i < LULL_JOB_EVIDENCE; i++)
		if (rank->has_why && rank->evidence[i].cause == cause)
			return rank->evidence[i].fix;
	return NULL;
}

const char *lull_job_fix(const struct lull_job *job, const struct lull_job_rank *rank, int cause)
{
	const struct lull_job_rank *all = job->ranks.at;
	const char *fix = rank ? fix_of(rank, cause) : NULL;
	bool is_torch = rank && rank->is_torch;

	for (size_t i = 0; !rank && !fix && i < job->ranks.n; i++) {
		is_torch = is_torch || all[i].is_torch;
		fix = all[i].first == cause ? fix_of(&all[i], cause) : NULL;
	}
	if (fix)
		return fix;
	return is_torch && lull_causes[cause]->fix_torch ? lull_causes[cause]->fix_torch
							 : lull_causes[cause]->fix;
}

/* ---- the answer ---- */

static f64 median_step(const struct lull_job *job)
{
	const struct lull_job_rank *best = most_steps(job);
	const struct lull_job_step *steps;
	f64 *room, median;
	u32 n;

	steps = lull_job_steps(job, best, &n);
	room = lull_alloc(n + 1, sizeof(*room));
	for (u32 i = 0; i < n; i++)
		room[i] = (f64)steps[i].dur_ns;
	median = lull_job_median(room, n);
	free(room);
	return median;
}

static void sum_shares(const struct lull_job *job, struct lull_job_verdict *v)
{
	const struct lull_job_rank *all = job->ranks.at;
	u64 window = 0, compute = 0, wait = 0, transfer = 0, bubble = 0, copy = 0, idle = 0;
	u64 n_steps = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		n_steps += all[i].n_steps;
		window += all[i].window_ns;
		compute += all[i].compute_ns;
		wait += all[i].wait_ns;
		transfer += all[i].transfer_ns;
		bubble += all[i].bubble_ns;
		copy += all[i].copy_ns;
		idle += all[i].idle_ns;
	}
	if (!window)
		return;
	v->mean_ns = (f64)window / (f64)n_steps;
	v->compute = (f64)compute / (f64)window;
	v->wait = (f64)wait / (f64)window;
	v->transfer = (f64)transfer / (f64)window;
	v->bubble = (f64)bubble / (f64)window;
	v->copy = (f64)copy / (f64)window;
	v->idle = (f64)idle / (f64)window;
}

/* Mean a step of each cause over the ranks that are not late: those are explained by theirs. */
static void own_costs(const struct lull_job *job, f64 *cost_ns, f64 *wait_ns)
{
	const struct lull_job_rank *all = job->ranks.at;
	u64 sums[LULL_N_CAUSES] = { 0 }, wait = 0, n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		if (is_straggler(job, i))
			continue;
		for (int k = 0; k < LULL_N_CAUSES; k++)
			sums[k] += is_of_others(k) ? 0 : all[i].cost_ns[k];
		wait += all[i].wait_ns;
		n += all[i].n_steps;
	}
	for (int k = 0; k < LULL_N_CAUSES; k++)
		cost_ns[k] = n ? (f64)sums[k] / (f64)n : 0;
	*wait_ns = n ? (f64)wait / (f64)n : 0;
}

/* The first cause of most ranks. */
static i32 majority(const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	u32 counts[LULL_N_CAUSES] = { 0 };
	i32 best = -1;

	for (size_t i = 0; i < job->ranks.n; i++)
		if (all[i].first >= 0)
			counts[all[i].first]++;
	for (int k = 0; k < LULL_N_CAUSES; k++)
		if (counts[k] && !is_of_others(k) && (best < 0 || counts[k] > counts[best]))
			best = k;
	return best;
}

static bool is_unbalanced(const struct lull_job *job)
{
	const struct lull_job_stage *all = job->stages.at;
	f64 most = 0, sum = 0;

	for (size_t i = 0; i < job->stages.n; i++) {
		most = fmax(most, all[i].compute_ns);
		sum += all[i].compute_ns;
	}
	return job->stages.n > 1 && most * (f64)(job->stages.n - 1) >= BUSIER * (sum - most);
}

static void consider(struct lull_job_verdict *v, int cause, f64 cost_ns)
{
	if (cost_ns <= v->cost_ns)
		return;
	v->cause = cause;
	v->cost_ns = cost_ns;
}

static void give_up(const struct lull_job *job, struct lull_job_verdict *v)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n && !*v->why_not; i++)
		if (*all[i].cannot)
			snprintf(v->why_not, sizeof(v->why_not), "rank %lld: %.200s",
				 (long long)all[i].rank, all[i].cannot);
	if (!*v->why_not)
		snprintf(v->why_not, sizeof(v->why_not),
			 "no cause takes more than %.0f %% of the step", WORTH * 100);
}

/* More is not explained than the largest cause has: that is no more than likely. */
static void doubt(struct lull_job_verdict *v, f64 blind_ns)
{
	snprintf(v->why_not, sizeof(v->why_not),
		 "the recordings do not explain %.2f ms of each step of %.2f ms", blind_ns / 1e6,
		 v->mean_ns / 1e6);
	if (v->cause >= 0 && v->cost_ns >= WORTH * v->step_ns) {
		v->likely = v->cause;
		v->likely_ns = v->cost_ns;
	}
	v->cause = -1;
	v->cost_ns = 0;
}

static f64 hidden_share(const struct lull_job *job)
{
	const struct lull_job_kind *all = job->kinds.at;
	u64 dur_ns = 0, exposed_ns = 0;

	for (size_t i = 0; i < job->kinds.n; i++) {
		dur_ns += all[i].dur_ns;
		exposed_ns += all[i].exposed_ns;
	}
	return dur_ns ? 1 - (f64)exposed_ns / (f64)dur_ns : 0;
}

void lull_job_judge(struct lull_job *job)
{
	struct lull_job_verdict *v = &job->verdict;
	f64 cost_ns[LULL_N_CAUSES], wait_ns, blind_ns;

	v->cause = v->likely = -1;
	v->n_steps = job->n_steps;
	v->step_ns = median_step(job);
	v->hidden = hidden_share(job);
	sum_shares(job, v);
	own_costs(job, cost_ns, &wait_ns);
	if (job->stragglers.n)
		consider(v, lull_cause_among_ranks(LULL_RANKS_LATE), wait_ns);
	if (is_unbalanced(job))
		consider(v, lull_cause_among_ranks(LULL_RANKS_STAGE), v->bubble * v->mean_ns);
	consider(v, lull_cause_among_ranks(LULL_RANKS_EXCHANGE),
		 (v->transfer + (job->stragglers.n ? 0 : v->wait)) * v->mean_ns);
	for (int k = 0; k < LULL_N_CAUSES; k++)
		if (lull_causes[k]->kind != LULL_CAUSE_BLIND)
			consider(v, k, cost_ns[k]);
	blind_ns = cost_ns[lull_cause_default(LULL_CAUSE_BLIND)];
	if (blind_ns > v->cost_ns && blind_ns >= WORTH * v->step_ns) {
		doubt(v, blind_ns);
		return;
	}
	if (v->cause >= 0 && v->cost_ns >= WORTH * v->step_ns)
		return;
	v->cause = majority(job);
	v->cost_ns = 0;
	if (v->cause < 0)
		give_up(job, v);
	else if (lull_causes[v->cause]->kind != LULL_CAUSE_BUSY)
		v->cost_ns = cost_ns[v->cause];
}
