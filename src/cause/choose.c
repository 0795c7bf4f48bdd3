/*
 * choose - which cause comes first, how sure that is, and what its fix would gain.
 *
 * What a cause is worth is the time that it has, less half of what its fix would leave of that by
 * the replay. The time says what happened, and is the same from one recording to the next; a gain
 * that is larger than the time comes from other causes' time, and counts for them.
 *
 * If the device computes for at least 90 % of the step: gpu-bound or a cause of the same kind. Else
 * the specific cause that is worth most, if it is worth and gains 10 % of the step, and is not
 * small beside launches: it has to be removed before a graph can remove these. Else the one with
 * the most time. An answer that is
 * not sure is given as a guess, with the reason (doubt.c).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

f64 lull_why_linked(const struct lull_subject *s)
{
	return s->units.n ? (f64)s->chain.n_units_linked / (f64)s->units.n : 0;
}

static bool is_spoilt(const struct lull_why *why)
{
	return fabs(why->replay.error) > LULL_T(replay_error);
}

/* ---- findings ---- */

/* What the fix brings, with the cost of recording taken out on both sides; and what both say. */
static void fill_worth(struct lull_why *why, struct lull_finding *f)
{
	f->worth_ns = f->cost_ns;
	if (!lull_causes[f->cause]->apply || is_spoilt(why))
		return;
	f->gain_ns = fmax(why->replay.free_ns - lull_why_fixed_ns(why, f->cause, 0), 0);
	/* What an exchange would bring, one rank does not tell. */
	if (lull_causes[f->cause]->ranks != LULL_RANKS_EXCHANGE)
		f->worth_ns = (f->cost_ns + fmin(f->gain_ns, f->cost_ns)) / 2;
}

static void add_finding(struct lull_why *why, enum lull_cause_ix cause, f64 cost_ns)
{
	struct lull_finding *f = lull_vec_push(&why->findings);

	f->cause = cause;
	f->cost_ns = cost_ns;
	f->share = cost_ns / why->step_ns;
	lull_vec_init(&f->evidence, sizeof(struct lull_evidence));
	fill_worth(why, f);
}

static void add_findings(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	f64 n = lull_why_n_steps(why);

	for (int i = 0; i < LULL_N_CAUSES; i++) {
		f64 cost_ns = (f64)s->cost_ns[i] / n;

		if (cost_ns >= LULL_T(listed) * why->step_ns &&
		    lull_causes[i]->kind != LULL_CAUSE_BUSY)
			add_finding(why, (enum lull_cause_ix)i, cost_ns);
	}
}

/* What cannot be told comes last; then what they are worth, cost and name. */
static int by_worth(const void *a, const void *b)
{
	const struct lull_finding *x = a, *y = b;
	enum lull_cause_kind kx = lull_causes[x->cause]->kind, ky = lull_causes[y->cause]->kind;

	if ((kx == LULL_CAUSE_BLIND) != (ky == LULL_CAUSE_BLIND))
		return kx == LULL_CAUSE_BLIND ? 1 : -1;
	if (x->worth_ns != y->worth_ns)
		return x->worth_ns < y->worth_ns ? 1 : -1;
	if (x->cost_ns != y->cost_ns)
		return x->cost_ns < y->cost_ns ? 1 : -1;
	return strcmp(lull_causes[x->cause]->id, lull_causes[y->cause]->id);
}

/* ---- the device is busy ---- */

/* Computes, or pauses by itself: waiting in a collective is neither. */
static f64 device_ns(const struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u64 sum = s->split_ns[LULL_SPLIT_COMPUTE];

	for (int i = 0; i < LULL_N_CAUSES; i++)
		sum += lull_causes[i]->is_pause ? s->cost_ns[i] : 0;
	return (f64)sum / lull_why_n_steps(why);
}

/* The first cause that says it is what the device is busy with, and its time. */
static enum lull_cause_ix busy_cause(struct lull_why *why, f64 *cost_ns)
{
	int found = -1;

	/* All are asked: what they measure is used by their apply(), too. */
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		f64 ns = lull_causes[i]->busy ? lull_causes[i]->busy(why) : 0;

		if (ns > 0 && found < 0) {
			found = i;
			*cost_ns = ns;
		}
	}
	return found < 0 ? lull_cause_default(LULL_CAUSE_BUSY) : (enum lull_cause_ix)found;
}

static void choose_busy(struct lull_why *why, f64 share)
{
	f64 cost_ns = 0;
	enum lull_cause_ix cause = busy_cause(why, &cost_ns);
	struct lull_finding f;

	/* Gaps between kernels belong to their own cause, though they helped to choose. */
	if (!lull_why_find(why, cause))
		add_finding(why, cause, cost_ns);
	/* In front of what little else there is. */
	for (size_t i = 0; i < why->findings.n; i++) {
		struct lull_finding *all = why->findings.at;

		if (all[i].cause != cause)
			continue;
		f = all[i];
		memmove(all + 1, all, i * sizeof(*all));
		f.confidence = lull_why_trust_busy(why, share);
		all[0] = f;
		why->first = 0;
	}
}

/* ---- the choice ---- */

static bool is_unseen(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];

	return cause->is_guess && cause->is_guess(why->lead);
}

/*
 * Whether the residue comes before it all the same: it is small beside it, or the residue's fix
 * takes most of its time, too.
 */
static bool comes_later(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_finding *rest =
		lull_why_find(why, lull_cause_default(LULL_CAUSE_RESIDUE));

	if (rest && f->worth_ns < LULL_T(beside_residue) * rest->worth_ns)
		return true;

	if (!lull_causes[f->cause]->is_captured || !rest || rest->worth_ns <= f->worth_ns ||
	    is_spoilt(why))
		return false;
	/* Then little is left for its own. */
	return lull_why_fixed_ns(why, rest->cause, 0) -
		       lull_why_both_ns(why, rest->cause, f->cause) <
	       f->cost_ns / 2;
}

/*
 * The specific cause that is worth doing; they are sorted by worth. Where the first of them has the
 * time, but its fix brings little, time decides among all, not the gain of a lesser one.
 */
static int find_specific(const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at;

	for (size_t i = 0; i < why->findings.n; i++) {
		f64 limit = is_unseen(why, &all[i]) ? LULL_T(gain_guessed) : LULL_T(gain);
		bool has_gain = lull_causes[all[i].cause]->apply && !is_spoilt(why);

		if (lull_causes[all[i].cause]->kind != LULL_CAUSE_SPECIFIC ||
		    all[i].worth_ns < limit * why->free_ns || comes_later(why, &all[i]))
			continue;
		return has_gain && all[i].gain_ns < limit * why->free_ns ? -1 : (int)i;
	}
	return -1;
}

static int find_largest(const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at;
	int best = -1;

	for (size_t i = 0; i < why->findings.n; i++) {
		if (lull_causes[all[i].cause]->kind == LULL_CAUSE_BLIND ||
		    all[i].share < LULL_T(cost) || lull_causes[all[i].cause]->is_pause)
			continue;
		if (best < 0 || all[i].cost_ns > all[best].cost_ns)
			best = (int)i;
	}
	return best;
}

static void choose_idle(struct lull_why *why, f64 share)
{
	int first = find_specific(why);

	if (first < 0)
		first = find_largest(why);
	if (first < 0 && share >= LULL_T(mostly_busy)) {
		choose_busy(why, share);
		return;
	}
	if (first < 0 && !lull_why_cannot_see(why))
		lull_why_cannot(why, "no cause takes more than %.0f %% of the step.",
				LULL_T(cost) * 100);
	why->first = first;
}

/* ---- predictions ---- */

/* Whether a prediction can be made at all, and why not. */
static bool can_predict(struct lull_why *why)
{
	const char *no = NULL;

	if (is_spoilt(why))
		snprintf(why->no_prediction, sizeof(why->no_prediction),
			 "replaying the recorded step gives %s instead of %s (%+.1f %%): the "
			 "recording lacks something important",
			 lull_why_time(why->replay.as_is_ns).text,
			 lull_why_time(why->replay.measured_ns).text, why->replay.error * 100);
	else if (lull_why_linked(why->lead) < LULL_T(linked))
		no = "the CUDA calls of too much work are not in the recording";
	else if (lull_why_blind_share(why) > LULL_T(blind))
		no = "most of the time without compute is not explained";
	if (no)
		snprintf(why->no_prediction, sizeof(why->no_prediction), "%s", no);
	return !*why->no_prediction;
}

/* Other ranks set the pace: what a fix of this one brings, they may eat up. */
static bool depends_on_ranks(const struct lull_why *why)
{
	return (f64)why->lead->cost_ns[lull_cause_among_ranks(LULL_RANKS_EXCHANGE)] >
	       LULL_T(pace) * (f64)why->lead->window_ns;
}

static void predict_all(struct lull_why *why)
{
	bool has_pace = depends_on_ranks(why);

	if (has_pace)
		snprintf(why->no_prediction, sizeof(why->no_prediction),
			 "the step depends on other ranks");
	for (size_t i = 0; i < why->findings.n; i++) {
		struct lull_finding *f = lull_vec_get(&why->findings, i);
		struct lull_why_change all = { f->cause, 1 };

		if (lull_causes[f->cause]->apply &&
		    (!has_pace || lull_causes[f->cause]->ranks == LULL_RANKS_EXCHANGE))
			f->prediction = lull_why_predict(why, &all, 1);
	}
}

void lull_why_choose(struct lull_why *why)
{
	f64 share;

	/* A replay that went wrong spoils predictions, not what was measured. */
	if (is_spoilt(why))
		why->replay.free_ns = why->step_ns;
	why->free_ns = why->replay.free_ns;
	add_findings(why);
	if (why->findings.n)
		lull_sort(why->findings.at, why->findings.n, sizeof(struct lull_finding), by_worth);
	for (size_t i = 0; i < why->findings.n; i++)
		lull_why_trust(why, lull_vec_get(&why->findings, i));
	share = device_ns(why) / fmin(why->step_ns, why->free_ns);
	if (share >= LULL_T(busy))
		choose_busy(why, share);
	else
		choose_idle(why, share);
	if (can_predict(why))
		predict_all(why);
}
