/*
 * doubt - how sure the answer is, and if it is not: why, and what would settle it.
 *
 * The confidence is a product. What may be wrong with any answer: work without its call, clocks
 * that do not agree, few steps, time of which nobody knows what it was. What may be wrong with this
 * one: another cause worth nearly as much (two that are worth the same are even odds), little to
 * gain, halves of the steps that do not agree, what the cause itself knows about its signs. How
 * well the replay works says nothing about what happened, and is left out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cause/thresholds.h"
#include "cause/why_int.h"
#include "text/term.h"

/* ---- parts of it ---- */

f64 lull_why_blind_share(const struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u64 waste_ns = s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE];

	return waste_ns ? (f64)s->cost_ns[lull_cause_default(LULL_CAUSE_BLIND)] / (f64)waste_ns : 0;
}

/* What holds for every answer. */
static f64 common(const struct lull_why *why)
{
	f64 steps = lull_why_n_steps(why) < LULL_TN(few_steps) ? LULL_T(few_steps_trust) : 1;

	return lull_why_linked(why->lead) * steps * (why->has_skew ? LULL_T(skew_trust) : 1);
}

/* Whether this one could be first instead. */
static bool is_rival(const struct lull_finding *f, const struct lull_finding *other)
{
	const struct lull_cause *cause = lull_causes[other->cause];

	if (other == f || cause->kind == LULL_CAUSE_BLIND || cause->kind == LULL_CAUSE_BUSY ||
	    cause->is_pause)
		return false;
	return cause->kind == LULL_CAUSE_SPECIFIC ||
	       lull_causes[f->cause]->kind != LULL_CAUSE_SPECIFIC;
}

/* The one of them that is worth most, or NULL. */
static const struct lull_finding *next_of(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_finding *all = why->findings.at, *best = NULL;

	for (size_t i = 0; i < why->findings.n; i++) {
		if (is_rival(f, &all[i]) && (!best || all[i].worth_ns > best->worth_ns))
			best = &all[i];
	}
	return best;
}

/* The time of a cause in the steady steps from `first` to before `end`. */
static u64 cost_in(const struct lull_subject *s, enum lull_cause_ix cause, u32 first, u32 end)
{
	u64 sum = 0;

	for (u32 i = first; i < end; i++)
		sum += s->step_cost_ns[(size_t)i * LULL_SUBJECT_CAUSES + cause];
	return sum;
}

/* Whether it has more time than what it is put before, in each half of the steps. */
static bool halves_agree(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	const struct lull_finding *all = why->findings.at;
	u32 n = lull_why_n_steps(why), half = n / 2;

	for (size_t i = 0; s->step_cost_ns && n >= 2 * LULL_TN(few_steps) && i < why->findings.n;
	     i++) {
		if (!is_rival(f, &all[i]) || all[i].cost_ns > f->cost_ns)
			continue;
		if (cost_in(s, f->cause, 0, half) < cost_in(s, all[i].cause, 0, half) ||
		    cost_in(s, f->cause, half, n) < cost_in(s, all[i].cause, half, n))
			return false;
	}
	return true;
}

void lull_why_trust(const struct lull_why *why, struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const struct lull_finding *next = next_of(why, f);
	const struct lull_finding *rest =
		lull_why_find(why, lull_cause_default(LULL_CAUSE_RESIDUE));

	f->confidence = 0;
	if (f->worth_ns <= 0)
		return;
	f->confidence = common(why) * (1 - lull_why_blind_share(why)) *
			(cause->trust ? cause->trust(why->lead) : 1) * f->worth_ns /
			(f->worth_ns + (next ? next->worth_ns : 0)) *
			fmin(1, f->worth_ns / (LULL_T(gain_sure) * why->free_ns));
	if (cause->kind == LULL_CAUSE_SPECIFIC && rest && rest->worth_ns > f->worth_ns)
		f->confidence *= LULL_T(residue_trust);
	if (!halves_agree(why, f))
		f->confidence *= LULL_T(halves_trust);
}

f64 lull_why_trust_busy(const struct lull_why *why, f64 share)
{
	f64 from = LULL_T(mostly_busy), to = LULL_T(busy_sure);

	return common(why) * fmin(fmax((share - from) / (to - from), 0), 1);
}

/* ---- in words ---- */

const char *lull_why_because(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const struct lull_subject *s = why->lead;

	return cause->because_waits && s->mute_ns[f->cause] * 2 > s->cost_ns[f->cause]
		       ? cause->because_waits
		       : cause->because;
}

static const char *const blinds[LULL_N_BLINDS] = {
	"work whose CUDA call is not in the recording",
	("work that was launched but held back on the device by something not in the recording (an "
	 "event of another stream, kernels that were not recorded, another process or rank)"),
	"code of the launching thread that was not recorded",
	"irregular stalls, too few to judge",
	("before and between kernels of CUDA graphs that were launched long before: the recording "
	 "seems to lack other kernels of these graphs"),
};

static const char skewed[] = "work starts on the device before the calls that launch it: the "
			     "clocks of host and device do not agree in this recording";

/* What would tell: LULL_NEED_...; 0 is more steps. */
static const u32 blind_needs[LULL_N_BLINDS] = { LULL_NEED_CALLS, LULL_NEED_RANKS, LULL_NEED_HOST,
						LULL_NEED_SCHED, LULL_NEED_GRAPHS };

static enum lull_blind largest_blind(const struct lull_subject *s)
{
	int best = 0;

	for (int i = 1; i < LULL_N_BLINDS; i++)
		best = s->blind_ns[i] > s->blind_ns[best] ? i : best;
	return (enum lull_blind)best;
}

bool lull_why_cannot_see(struct lull_why *why)
{
	f64 share = lull_why_blind_share(why);

	if (why->has_skew)
		lull_why_cannot(why, "%s.", skewed);
	else if (share > LULL_T(blind))
		lull_why_cannot(why, "%.0f %% of the time without compute is %s.", share * 100,
				blinds[largest_blind(why->lead)]);
	return why->has_skew || share > LULL_T(blind);
}

/* Why any answer would be in doubt. False: it would not. */
static bool doubt_all(struct lull_why *why, u32 *needs)
{
	const struct lull_subject *s = why->lead;
	size_t cap = sizeof(why->unsure);

	if (lull_why_linked(s) < LULL_T(linked_least)) {
		snprintf(why->unsure, cap,
			 "%s of %s kernels, copies and memsets have no CUDA call in the recording",
			 lull_format_grouped((i64)(s->units.n - s->chain.n_units_linked)).text,
			 lull_format_grouped((i64)s->units.n).text);
		*needs = LULL_NEED_CALLS;
	} else if (why->has_skew) {
		snprintf(why->unsure, cap, "%s", skewed);
	} else if (lull_why_blind_share(why) > LULL_T(blind)) {
		snprintf(why->unsure, cap, "%.0f %% of the time without compute is %s",
			 lull_why_blind_share(why) * 100, blinds[largest_blind(s)]);
		*needs = blind_needs[largest_blind(s)];
	} else {
		return false;
	}
	return true;
}

/* Why this one is. */
static void doubt_one(struct lull_why *why, const struct lull_finding *f, u32 *needs)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const struct lull_finding *next = next_of(why, f);
	size_t cap = sizeof(why->unsure);

	if (cause->kind == LULL_CAUSE_BUSY)
		snprintf(why->unsure, cap,
			 "the GPU does not compute for %.0f %% of the step, and no cause has much "
			 "of that",
			 lull_why_waste_ns(why) / why->step_ns * 100);
	else if (!halves_agree(why, f))
		snprintf(why->unsure, cap,
			 "in the first and in the second half of the steps different causes have "
			 "the most time");
	else if (cause->is_guess && cause->is_guess(why->lead)) {
		bool waits = why->lead->mute_ns[f->cause] > why->lead->unseen_ns[f->cause];

		snprintf(why->unsure, cap, "%s",
			 waits ? "the thread does not run for most of that time, and what it waits "
				 "for was not recorded"
			 : why->lead->host.has_samples
				 ? "no sample was taken where the time goes"
				 : "nothing was recorded where the time goes");
		*needs = waits ? LULL_NEED_OS : LULL_NEED_HOST;
	} else if (next && next->worth_ns * 2 > f->worth_ns) {
		snprintf(why->unsure, cap, "%s is worth nearly as much (%s per step)",
			 lull_causes[next->cause]->id, lull_why_time(next->cost_ns).text);
		*needs = LULL_NEED_TRIAL;
	} else if (lull_why_n_steps(why) < LULL_TN(few_steps))
		snprintf(why->unsure, cap, "there %s only %u step%s after the warm-up",
			 lull_why_n_steps(why) == 1 ? "is" : "are", lull_why_n_steps(why),
			 lull_why_n_steps(why) == 1 ? "" : "s");
	else if (cause->trust && cause->trust(why->lead) < LULL_T(confident)) {
		snprintf(why->unsure, cap, "it is judged by its pattern alone");
		*needs = cause->needs & (LULL_NEED_GIL | LULL_NEED_SCHED | LULL_NEED_HOST);
	} else {
		snprintf(why->unsure, cap, "it has only %.0f %% of the step", f->share * 100);
		*needs = LULL_NEED_TRIAL;
	}
}

void lull_why_doubt(struct lull_why *why)
{
	const struct lull_finding *f = lull_why_first(why);
	u32 needs = 0;

	if (!f)
		return;
	why->is_probable = doubt_all(why, &needs);
	if (!why->is_probable &&
	    (f->confidence < LULL_T(confident) ||
	     (lull_causes[f->cause]->is_guess && lull_causes[f->cause]->is_guess(why->lead)))) {
		why->is_probable = true;
		doubt_one(why, f, &needs);
	}
	if (why->is_probable)
		lull_why_settle(why, needs);
}
