/*
 * choose - which cause comes first, how sure that is, and what its fix would gain.
 *
 * If the device is busy for at least 90 % of the step: gpu-bound or a cause of the same kind. Else
 * the specific cause with the largest gain, if that is worth 10 % of the step: it has to be removed
 * before a graph can remove launches. Else the largest cost. Else nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

static f64 linked(const struct lull_subject *s)
{
	return s->units.n ? (f64)s->chain.n_units_linked / (f64)s->units.n : 0;
}

/* ---- predictions ---- */

f64 lull_why_replay(const struct lull_replay *p, const struct lull_cause *cause, f64 factor,
		    int scenario)
{
	struct lull_what_if w;
	f64 step;

	lull_what_if_init(&w, p, scenario);
	w.factor = factor;
	w.scale = scenario < 0 ? LULL_T(recording_good) : scenario > 0 ? LULL_T(recording_poor) : 1;
	/* How fast the host is without a foreign profiler is the largest doubt of all. */
	if (p->is_foreign && scenario < 0)
		w.host *= LULL_T(foreign_good);
	cause->apply(&w);
	step = lull_what_if_run(&w);
	lull_what_if_release(&w);
	return step;
}

/*
 * How far a prediction could be off at least: a standard error of the steps, or the replay's limit.
 */
static f64 step_doubt(const struct lull_why *why)
{
	u32 n = lull_why_n_steps(why);

	return n > 1 ? fmax(fmin(why->spread / sqrt(n), LULL_T(doubt_most)), LULL_T(replay_error))
		     : LULL_T(doubt_one_step);
}

static struct lull_prediction predict(const struct lull_why *why, const struct lull_cause *cause,
				      f64 factor)
{
	const struct lull_replay *p = &why->replay;
	struct lull_prediction out = { .is_known = true };
	f64 doubt = step_doubt(why), a, b;

	out.step_ns = lull_why_replay(p, cause, factor, 0);
	a = lull_why_replay(p, cause, factor, -1);
	b = lull_why_replay(p, cause, factor, 1);
	/* No fix makes a step longer; where the model says so, it brings nothing. */
	out.step_ns = fmin(out.step_ns, p->free_ns);
	out.low_ns = fmin(fmin(a, b), out.step_ns) * (1 - doubt);
	out.high_ns = fmax(fmin(fmax(a, b), p->free_ns), out.step_ns) * (1 + doubt);
	out.ratio = out.step_ns > 0 ? p->free_ns / out.step_ns : 1;
	return out;
}

/* ---- findings ---- */

/* What the fix brings, with the cost of recording taken out on both sides. */
static void fill_gain(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	f64 gain;

	if (!cause->apply)
		return;
	gain = why->replay.free_ns - lull_why_replay(&why->replay, cause, 1, 0);
	f->gain_ns = gain > 0 ? gain : 0;
}

static void add_finding(struct lull_why *why, enum lull_cause_ix cause, f64 cost_ns)
{
	struct lull_finding *f = lull_vec_push(&why->findings);

	f->cause = cause;
	f->cost_ns = cost_ns;
	f->share = cost_ns / why->step_ns;
	lull_vec_init(&f->evidence, sizeof(struct lull_evidence));
	fill_gain(why, f);
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

/* Specific before residue before what cannot be told; then gain, cost and name. */
static int by_worth(const void *a, const void *b)
{
	const struct lull_finding *x = a, *y = b;
	enum lull_cause_kind kx = lull_causes[x->cause]->kind, ky = lull_causes[y->cause]->kind;

	if ((kx == LULL_CAUSE_BLIND) != (ky == LULL_CAUSE_BLIND))
		return kx == LULL_CAUSE_BLIND ? 1 : -1;
	if (x->gain_ns != y->gain_ns)
		return x->gain_ns < y->gain_ns ? 1 : -1;
	if (x->cost_ns != y->cost_ns)
		return x->cost_ns < y->cost_ns ? 1 : -1;
	return strcmp(lull_causes[x->cause]->id, lull_causes[y->cause]->id);
}

/* ---- confidence ---- */

/* What holds for every answer: links, replay, number of steps. */
static f64 common_confidence(const struct lull_why *why)
{
	f64 steps = lull_why_n_steps(why) < LULL_TN(few_steps) ? LULL_T(few_steps_trust) : 1;

	return linked(why->lead) * fmax(1 - LULL_T(replay_doubt) * fabs(why->replay.error), 0) *
	       steps;
}

static f64 cause_factor(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;

	return lull_causes[f->cause]->trust ? lull_causes[f->cause]->trust(s) : 1;
}

/* The largest gain, or cost where there is no prediction, of other specific causes. */
static f64 next_worth(const struct lull_why *why, const struct lull_finding *f, bool by_cost)
{
	const struct lull_finding *all = why->findings.at;
	f64 best = 0;

	for (size_t i = 0; i < why->findings.n; i++) {
		if (&all[i] == f || lull_causes[all[i].cause]->kind != LULL_CAUSE_SPECIFIC)
			continue;
		best = fmax(best, by_cost ? all[i].cost_ns : all[i].gain_ns);
	}
	return best;
}

static f64 blind_share(const struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u64 waste_ns =
		s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE] - s->split_ns[LULL_SPLIT_COLLECTIVE];

	return waste_ns ? (f64)s->cost_ns[lull_cause_default(LULL_CAUSE_BLIND)] / (f64)waste_ns : 0;
}

static void set_confidence(const struct lull_why *why, struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const struct lull_finding *rest =
		lull_why_find(why, lull_cause_default(LULL_CAUSE_RESIDUE));
	bool by_cost = !cause->apply;
	f64 worth = by_cost ? f->cost_ns : f->gain_ns, next = next_worth(why, f, by_cost);
	f64 c = common_confidence(why) * (1 - blind_share(why)) * cause_factor(why, f);

	if (worth <= 0) {
		f->confidence = 0;
		return;
	}
	if (cause->kind == LULL_CAUSE_SPECIFIC)
		c *= worth / (worth + next);
	c *= fmin(1, worth / (LULL_T(gain_sure) * why->free_ns));
	if (cause->kind == LULL_CAUSE_SPECIFIC && rest && rest->gain_ns > worth)
		c *= LULL_T(residue_trust);
	f->confidence = c;
}

/* ---- the device is busy ---- */

static f64 device_ns(const struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u64 sum = s->split_ns[LULL_SPLIT_COMPUTE] + s->split_ns[LULL_SPLIT_COLLECTIVE];

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

/* How sure it is that a device busy for this share of the step is what makes it long. */
static f64 busy_trust(f64 share)
{
	f64 from = LULL_T(busy_doubt), to = LULL_T(busy_sure);

	return fmin(fmax((share - from) / (to - from), 0), 1);
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
		f.confidence = common_confidence(why) * busy_trust(share);
		all[0] = f;
		why->first = 0;
	}
}

/* ---- the choice ---- */

static const char *const blinds[LULL_N_BLINDS] = {
	"work whose CUDA call is not in the recording",
	("work that was launched but held back on the device by something not in the recording (an "
	 "event of another stream, another process or rank)"),
	"the launching thread did something that was not recorded (record samples or ranges)",
	"irregular stalls, too few to judge (record more steps)",
};

static const char *largest_blind(const struct lull_subject *s)
{
	int best = 0;

	for (int i = 1; i < LULL_N_BLINDS; i++)
		best = s->blind_ns[i] > s->blind_ns[best] ? i : best;
	return blinds[best];
}

static bool is_unseen(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];

	return cause->is_guess && cause->is_guess(why->lead);
}

/* The specific cause that is worth doing; they are sorted by worth. */
static int find_specific(const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at;

	for (size_t i = 0; i < why->findings.n; i++) {
		const struct lull_cause *cause = lull_causes[all[i].cause];
		f64 limit = is_unseen(why, &all[i]) ? LULL_T(gain_guessed) : LULL_T(gain);
		f64 worth = cause->apply ? all[i].gain_ns : all[i].cost_ns;

		if (cause->kind == LULL_CAUSE_SPECIFIC && worth >= limit * why->free_ns)
			return (int)i;
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

/*
 * No fix is worth much, as where the link itself is the limit: then the cost speaks, half as loud.
 */
static void believe_cost(const struct lull_why *why, struct lull_finding *f)
{
	f64 next = next_worth(why, f, true);
	f64 c = LULL_T(cost_trust) * common_confidence(why) * (1 - blind_share(why)) *
		cause_factor(why, f);

	c *= fmin(1, f->cost_ns / (LULL_T(gain_sure) * why->free_ns)) * f->cost_ns /
	     (f->cost_ns + next);
	f->confidence = fmax(f->confidence, c);
}

static void choose_idle(struct lull_why *why)
{
	struct lull_finding *f;
	int first;

	if (blind_share(why) > LULL_T(blind)) {
		lull_why_cannot(why, "%.0f %% of the time without compute is %s.",
				blind_share(why) * 100, largest_blind(why->lead));
		return;
	}
	first = find_specific(why);
	if (first < 0) {
		first = find_largest(why);
		if (first >= 0)
			believe_cost(why, lull_vec_get(&why->findings, (size_t)first));
	}
	if (first < 0) {
		lull_why_cannot(why, "no cause takes more than %.0f %% of the step.",
				LULL_T(cost) * 100);
		return;
	}
	f = lull_vec_get(&why->findings, (size_t)first);
	if (f->confidence < LULL_T(confident)) {
		lull_why_cannot(
			why,
			"the most likely cause is %s, but the evidence is weak (confidence %.2f, "
			"needed %.2f). Record more steps, and all sources.",
			lull_causes[f->cause]->id, f->confidence, LULL_T(confident));
		return;
	}
	why->first = first;
}

/* Whether a prediction can be made at all, and why not. */
static bool can_predict(struct lull_why *why)
{
	const char *no = NULL;

	if (fabs(why->replay.error) > LULL_T(replay_error))
		snprintf(why->no_prediction, sizeof(why->no_prediction),
			 "replaying the recorded step gives %.2f ms instead of %.2f ms (%+.1f %%): "
			 "the recording lacks something important",
			 why->replay.as_is_ns / 1e6, why->replay.measured_ns / 1e6,
			 why->replay.error * 100);
	else if (linked(why->lead) < LULL_T(linked))
		no = "the CUDA calls of too much work are not in the recording";
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

		if (lull_causes[f->cause]->apply &&
		    (!has_pace || lull_causes[f->cause]->ranks == LULL_RANKS_EXCHANGE))
			f->prediction = predict(why, lull_causes[f->cause], 1);
	}
}

void lull_why_choose(struct lull_why *why)
{
	f64 share;
	bool is_spoilt = fabs(why->replay.error) > LULL_T(replay_error);

	why->free_ns = is_spoilt ? why->step_ns : why->replay.free_ns;
	if (is_spoilt)
		why->replay.free_ns = why->step_ns;
	add_findings(why);
	if (why->findings.n)
		lull_sort(why->findings.at, why->findings.n, sizeof(struct lull_finding), by_worth);
	for (size_t i = 0; i < why->findings.n; i++)
		set_confidence(why, lull_vec_get(&why->findings, i));
	share = device_ns(why) / fmin(why->step_ns, why->free_ns);
	if (share >= LULL_T(busy))
		choose_busy(why, share);
	else
		choose_idle(why);
	if (can_predict(why))
		predict_all(why);
}

/* ---- the user's own question ---- */

static int ask_kernel(const struct lull_why *why, const char *name, size_t len, f64 factor,
		      struct lull_prediction *answer, struct lull_err *err)
{
	const struct lull_subject *s = why->lead;
	char *part = strndup(name, len);
	struct lull_what_if w;
	u64 n = 0;

	lull_what_if_init(&w, &why->replay, 0);
	for (u32 i = 0; part && i < w.n_ops; i++) {
		const struct lull_unit *unit = &s->units.at[w.ops[i].unit];

		if (unit->kind > LULL_UNIT_COLLECTIVE ||
		    !strcasestr(lull_units_name(unit, s->reader), part))
			continue;
		w.ops[i].dur_ns *= factor;
		n++;
	}
	answer->step_ns = lull_what_if_run(&w);
	lull_what_if_release(&w);
	free(part);
	if (!n)
		return lull_fail(err, LULL_E_NOT_FOUND, "no kernel has \"%.*s\" in its name",
				 (int)len, name);
	answer->low_ns = answer->step_ns * (1 - step_doubt(why));
	answer->high_ns = answer->step_ns * (1 + step_doubt(why));
	answer->ratio = why->replay.free_ns / answer->step_ns;
	answer->is_known = true;
	return LULL_OK;
}

int lull_why_ask(const struct lull_why *why, const char *question, struct lull_prediction *answer,
		 struct lull_err *err)
{
	const char *equals = strrchr(question, '='), *nearest = NULL;
	size_t len = equals ? (size_t)(equals - question) : strlen(question);
	f64 factor = 0;
	char id[64], *end = NULL;
	int cause;

	if (equals)
		factor = strtod(equals + 1, &end);
	if (equals && (end == equals + 1 || *end || !(factor >= 0) || factor > 100))
		return lull_fail(err, LULL_E_USAGE, "%s: expected a factor after =, such as 0.5",
				 question);
	if (!why->has_replay || *why->no_prediction)
		return lull_fail(err, LULL_E_UNSUPPORTED, "no prediction: %s",
				 *why->no_prediction ? why->no_prediction : why->cannot);
	if (!strncmp(question, "kernel:", 7) && equals)
		return ask_kernel(why, question + 7, len - 7, factor, answer, err);
	snprintf(id, sizeof(id), "%.*s", (int)(len < sizeof(id) ? len : sizeof(id) - 1), question);
	cause = lull_cause_find(id, &nearest);
	if (cause < 0)
		return lull_fail(
			err, LULL_E_USAGE,
			"no cause %s%s%s; lull-causes(7) lists them, and kernel:NAME=FACTOR "
			"is for kernels",
			id, nearest ? ": did you mean " : "", nearest ? nearest : "");
	if (!lull_causes[cause]->apply)
		return lull_fail(err, LULL_E_UNSUPPORTED, "nothing can be predicted for %s", id);
	if (factor > 1)
		return lull_fail(err, LULL_E_USAGE,
				 "%s: the factor of a cause is 0 (removed) or 1 (unchanged)",
				 question);
	*answer = predict(why, lull_causes[cause], 1 - factor);
	return LULL_OK;
}
