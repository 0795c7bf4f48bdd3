/*
 * guess - where no steps are known: what most of the recording goes to, as if it were one step.
 *
 * That is less than an answer: start-up is in it, nothing repeats, and nothing can be predicted. It
 * says "Probably", why it is not sure, and what to record.
 */
#include <stdio.h>

#include "base/str.h"
#include "cause/marks.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

/* The cause with the most time; causes that have none or cannot be told are no guess. */
static int largest(const struct lull_subject *s)
{
	int best = -1;

	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (s->cost_ns[i] && lull_causes[i]->kind != LULL_CAUSE_BLIND &&
		    (best < 0 || s->cost_ns[i] > s->cost_ns[best]))
			best = i;
	return best;
}

/* Where the cause has most of its time, with that time; "" if it has it everywhere. */
static void find_place(const struct lull_subject *s, int cause, char *to, size_t cap)
{
	const struct lull_where *wheres = s->wheres.at;
	char what[220];

	*to = '\0';
	for (size_t i = 0; i < s->wheres.n; i++) {
		if (wheres[i].cause != cause)
			continue;
		/* They are sorted by time. */
		if ((f64)wheres[i].ns < LULL_T(line_share) * (f64)s->cost_ns[cause])
			return;
		lull_why_describe(s, &wheres[i], what, sizeof(what));
		snprintf(to, cap, " (%s: %s)", what, lull_why_time((f64)wheres[i].ns).text);
		return;
	}
}

/* What is not known may be anything. */
static bool is_mostly_blind(const struct lull_subject *s, f64 waste_ns)
{
	u64 blind_ns = 0;

	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (lull_causes[i]->kind == LULL_CAUSE_BLIND)
			blind_ns += s->cost_ns[i];
	return 2 * (f64)blind_ns > waste_ns;
}

/* What the time goes to, in a sentence; -1 if nothing can be said of it. */
static int say(struct lull_str *text, const struct lull_subject *s)
{
	f64 waste_ns = (f64)(s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE]);
	f64 waste = 100 * waste_ns / (f64)s->window_ns;
	struct lull_number whole = lull_why_time((f64)s->window_ns);
	int cause = largest(s), busy = lull_cause_default(LULL_CAUSE_BUSY);
	char place[280];

	if (waste_ns < (1 - LULL_T(mostly_busy)) * (f64)s->window_ns) {
		lull_str_addf(text,
			      "Probably %s. The GPU computes for %.0f %% of the %s from its first "
			      "work to its last: %s.",
			      lull_causes[busy]->id, 100 - waste, whole.text,
			      lull_causes[busy]->because);
		return busy;
	}
	if (cause < 0 || is_mostly_blind(s, waste_ns)) {
		lull_str_addf(text,
			      "In the %s from its first work to its last the GPU does not compute "
			      "for %.0f %%, and the recording does not show why.",
			      whole.text, waste);
		return -1;
	}
	find_place(s, cause, place, sizeof(place));
	lull_str_addf(text,
		      "Probably %s. The GPU does not compute for %.0f %% of the %s from its first "
		      "work to its last. For %s of that %s%s.",
		      lull_causes[cause]->id, waste, whole.text,
		      lull_why_time((f64)s->cost_ns[cause]).text,
		      lull_causes[cause]->because_once ? lull_causes[cause]->because_once
						       : lull_causes[cause]->because,
		      place);
	return cause;
}

/* Why it is no more than a guess. */
static const char *reason(const struct lull_subject *s)
{
	if (!s->rounds.all.n)
		return "nothing is marked as a step, and the launches do not repeat, so this is "
		       "the whole recording, with its start-up";
	if (s->rounds.all.n < 2)
		return "there is only one step, and the first step of a recording may be warm-up";
	return lull_why_has_warm_up(s)
		       ? "only the first step has GPU work, and it may be warm-up"
		       : "the steps contain no GPU work, so this is of what lies outside them";
}

static void doubt(struct lull_why *why)
{
	snprintf(why->unsure, sizeof(why->unsure), "%s", reason(why->lead));
	lull_why_settle(why, 0);
	snprintf(why->settle_how, sizeof(why->settle_how), "%s",
		 why->lead->rounds.all.n
			 ? "for 3 steps or more"
			 : "for 3 steps or more, marked with lull_step() or ranges named step_N");
}

void lull_why_guess(struct lull_why *why)
{
	struct lull_str text = LULL_STR_INIT;
	struct lull_subject one;

	if (lull_subject_as_one(&one, why->lead)) {
		lull_subject_slice(&one);
		lull_subject_mark_start_up(&one);
		lull_subject_attribute(&one);
		lull_why_share_out(why, &one);
		if (one.window_ns)
			why->guessed = say(&text, &one);
		snprintf(why->guess, sizeof(why->guess), "%s", lull_str_text(&text));
		if (why->guessed >= 0)
			doubt(why);
	}
	lull_str_release(&text);
	lull_subject_release_one(&one);
}
