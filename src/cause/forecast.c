/*
 * forecast - what a step would take after a fix.
 *
 * The replay says what it takes with all of a cause gone. What was measured limits that: no fix
 * makes a step longer, none saves more than the time it takes away, and kernels that stay take
 * their time. Where a part of a cause is gone, the fix is taken to hold in so many of the steps,
 * and not in the others: the mean lies on the line between the two, so less of a cause is never
 * slower.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cause/thresholds.h"
#include "cause/why_int.h"

/* Causes that one question may name. */
#define MAX_CAUSES 4

/* ---- the step ---- */

/* What the step is at least, and at most. */
static f64 hold(const struct lull_why *why, const struct lull_what_if *w, f64 step_ns)
{
	f64 free_ns = why->replay.free_ns;
	f64 kernels_ns = why->compute_share * why->step_ns - lull_what_if_fewer_ns(w);
	/* What recording cost a host that waited anyway counts where it no longer waits. */
	f64 removed_ns = lull_what_if_removed_ns(w) + why->replay.hidden_ns;
	f64 least_ns = fmax(kernels_ns, free_ns - removed_ns);

	return fmin(fmax(step_ns, least_ns), free_ns);
}

/*
 * What a step still takes, in the worst case, of work that a fix moves elsewhere: nobody saw how
 * fast it is there, nor what handing it over takes. A fix that says how fast it is there has told.
 */
static f64 moved_ns(const struct lull_why *why, const enum lull_cause_ix *causes, u32 set,
		    const struct lull_what_if *w, f64 step_ns)
{
	bool moves = false;

	for (u32 i = 0; set >> i; i++)
		moves |= (set >> i & 1) && lull_causes[causes[i]]->moves;
	if (!moves || w->scenario <= 0)
		return 0;
	return fmax(LULL_T(moved_poor) * (why->replay.free_ns - step_ns) -
			    (w->is_told ? w->floor_ns : 0),
		    0);
}

/* With all of the causes of the set gone: bit i is causes[i]. */
static f64 without_ns(const struct lull_why *why, const enum lull_cause_ix *causes, u32 set,
		      int scenario)
{
	const struct lull_replay *p = &why->replay;
	struct lull_what_if w;
	f64 step_ns;

	if (!set)
		return p->free_ns;
	lull_what_if_init(&w, p, scenario);
	w.scale = scenario < 0 ? LULL_T(recording_good) : scenario > 0 ? LULL_T(recording_poor) : 1;
	/* How fast the host is without a recorder and the cause is the largest doubt of all. */
	if (!why->is_calibrated && scenario)
		w.host *= scenario < 0 ? LULL_T(host_good) : LULL_T(host_poor);
	for (u32 i = 0; set >> i; i++) {
		if (set >> i & 1)
			lull_causes[causes[i]]->apply(&w);
	}
	lull_what_if_warm(&w);
	step_ns = lull_what_if_run(&w);
	/* The best case is for a faster host, too: only kernels limit that. */
	step_ns = scenario < 0 ? step_ns : hold(why, &w, step_ns);
	step_ns += moved_ns(why, causes, set, &w, step_ns);
	lull_what_if_release(&w);
	return step_ns;
}

f64 lull_why_fixed_ns(const struct lull_why *why, enum lull_cause_ix cause, int scenario)
{
	return without_ns(why, &cause, 1, scenario);
}

f64 lull_why_both_ns(const struct lull_why *why, enum lull_cause_ix a, enum lull_cause_ix b)
{
	return without_ns(why, (enum lull_cause_ix[]){ a, b }, 3, 0);
}

/* The mean over steps in which each cause is gone with its odds, of all sets of them. */
static f64 mixed_ns(const struct lull_why *why, const struct lull_why_change *changes, u32 n,
		    int scenario)
{
	enum lull_cause_ix causes[MAX_CAUSES];
	f64 fixed[1 << MAX_CAUSES], sum = 0;

	for (u32 i = 0; i < n; i++)
		causes[i] = changes[i].cause;
	for (u32 set = 0; set < 1u << n; set++) {
		f64 odds = 1;

		fixed[set] = without_ns(why, causes, set, scenario);
		for (u32 i = 0; i < n; i++) {
			/* Two fixes bring no less than one of them. */
			if (set >> i & 1)
				fixed[set] = fmin(fixed[set], fixed[set & ~(1u << i)]);
			odds *= set >> i & 1 ? changes[i].gone : 1 - changes[i].gone;
		}
		sum += odds * fixed[set];
	}
	return sum;
}

/* ---- with its range ---- */

/*
 * How far a prediction could be off at least: a standard error of the steps or of two runs, and the
 * replay's own error.
 */
static f64 step_doubt(const struct lull_why *why)
{
	u32 n = lull_why_n_steps(why);
	f64 doubt =
		n > 1 ? fmin(why->spread / sqrt(n), LULL_T(doubt_most)) : LULL_T(doubt_one_step);

	return fmax(doubt, LULL_T(doubt_least)) + LULL_T(replay_error);
}

struct lull_prediction lull_why_predict(const struct lull_why *why,
					const struct lull_why_change *changes, u32 n)
{
	struct lull_prediction out = { .is_known = true };
	f64 doubt = step_doubt(why), a, b;

	out.step_ns = mixed_ns(why, changes, n, 0);
	a = mixed_ns(why, changes, n, -1);
	b = mixed_ns(why, changes, n, 1);
	out.low_ns = fmin(fmin(a, b), out.step_ns) * (1 - doubt);
	/* Nor does a fix make a step longer within its range. */
	out.high_ns = fmax(fmin(fmax(a, b), why->replay.free_ns), out.step_ns) * (1 + doubt);
	out.high_ns = fmin(out.high_ns, fmax(why->replay.free_ns, out.step_ns));
	out.ratio = out.step_ns > 0 ? why->replay.free_ns / out.step_ns : 1;
	return out;
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

/* The cause whose id are the `len` characters. */
static int find_cause(const char *id_at, size_t len, enum lull_cause_ix *cause,
		      struct lull_err *err)
{
	const char *nearest = NULL;
	char id[64];
	int found;

	snprintf(id, sizeof(id), "%.*s", (int)(len < sizeof(id) ? len : sizeof(id) - 1), id_at);
	found = lull_cause_find(id, &nearest);
	if (found < 0)
		return lull_fail(
			err, LULL_E_USAGE,
			"no cause %s%s%s; lull-causes(7) lists them, and kernel:NAME=FACTOR "
			"is for kernels",
			id, nearest ? ": did you mean " : "", nearest ? nearest : "");
	if (!lull_causes[found]->apply)
		return lull_fail(err, LULL_E_UNSUPPORTED, "nothing can be predicted for %s", id);
	*cause = (enum lull_cause_ix)found;
	return LULL_OK;
}

/* CAUSE or CAUSE+CAUSE, `len` characters, of which all have the same part gone. */
static int ask_causes(const struct lull_why *why, const char *ids, size_t len, f64 gone,
		      struct lull_prediction *answer, struct lull_err *err)
{
	struct lull_why_change changes[MAX_CAUSES] = { { 0 } };
	u32 n = 0;

	for (size_t at = 0, end; at <= len; at = end + 1) {
		end = at + strcspn(ids + at, "+=");
		end = end < len ? end : len;
		if (n == MAX_CAUSES)
			return lull_fail(err, LULL_E_USAGE, "%s: at most %d causes at once", ids,
					 MAX_CAUSES);
		changes[n].gone = gone;
		if (find_cause(ids + at, end - at, &changes[n++].cause, err))
			return err->code;
	}
	*answer = lull_why_predict(why, changes, n);
	return LULL_OK;
}

int lull_why_ask(const struct lull_why *why, const char *question, struct lull_prediction *answer,
		 struct lull_err *err)
{
	const char *equals = strrchr(question, '=');
	size_t len = equals ? (size_t)(equals - question) : strlen(question);
	bool is_kernel = !strncmp(question, "kernel:", 7) && equals;
	f64 factor = 0;
	char *end = NULL;

	if (equals)
		factor = strtod(equals + 1, &end);
	if (equals && (end == equals + 1 || *end || !(factor >= 0) || factor > 100))
		return lull_fail(err, LULL_E_USAGE, "%s: expected a factor after =, such as 0.5",
				 question);
	if (!why->has_replay || *why->no_prediction)
		return lull_fail(err, LULL_E_UNSUPPORTED, "no prediction: %s",
				 *why->no_prediction ? why->no_prediction : why->cannot);
	if (is_kernel)
		return ask_kernel(why, question + 7, len - 7, factor, answer, err);
	if (factor > 1)
		return lull_fail(err, LULL_E_USAGE,
				 "%s: the factor of a cause is 0 (removed) or 1 (unchanged)",
				 question);
	return ask_causes(why, question, len, 1 - factor, answer, err);
}
