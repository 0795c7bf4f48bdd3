/*
 * guess - where no steps are known: what most of the recording goes to, as if it were one step.
 *
 * That is less than an answer: start-up is in it, nothing repeats, and nothing can be predicted.
 */
#include <stdio.h>

#include "base/str.h"
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

/* Where the cause has most of its time; "" if that is not known. */
static void find_place(const struct lull_subject *s, int cause, char *to, size_t cap)
{
	const struct lull_where *wheres = s->wheres.at;

	*to = '\0';
	for (size_t i = 0; i < s->wheres.n && !*to; i++) {
		struct lull_location at;

		if (wheres[i].cause != cause)
			continue;
		at = lull_location_find(s, wheres[i].event, wheres[i].stack);
		lull_location_format(&at, to, cap);
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

static void put(struct lull_why *why, const struct lull_subject *s)
{
	f64 waste_ns = (f64)(s->window_ns - s->split_ns[LULL_SPLIT_COMPUTE]);
	struct lull_str text = LULL_STR_INIT;
	int cause = largest(s);
	char place[200];

	lull_str_addf(&text,
		      "Best guess from all of the GPU's time, %s from its first work to its last: ",
		      lull_why_time((f64)s->window_ns).text);
	if (waste_ns < (1 - LULL_T(mostly_busy)) * (f64)s->window_ns) {
		lull_str_addf(&text, "it computes for %.0f %% of that, so look at its kernels.",
			      100 - 100 * waste_ns / (f64)s->window_ns);
	} else if (cause < 0 || is_mostly_blind(s, waste_ns)) {
		lull_str_addf(&text,
			      "it does not compute for %.0f %% of that, and the recording does not "
			      "show why.",
			      100 * waste_ns / (f64)s->window_ns);
	} else {
		find_place(s, cause, place, sizeof(place));
		lull_str_addf(&text, "it does not compute for %.0f %% of that. For %s %s%s%s (%s).",
			      100 * waste_ns / (f64)s->window_ns,
			      lull_why_time((f64)s->cost_ns[cause]).text,
			      lull_causes[cause]->because, *place ? ": " : "", place,
			      lull_causes[cause]->id);
	}
	snprintf(why->guess, sizeof(why->guess), "%s", lull_str_text(&text));
	lull_str_release(&text);
}

void lull_why_guess(struct lull_why *why)
{
	struct lull_subject one;

	if (lull_subject_as_one(&one, why->lead)) {
		lull_subject_slice(&one);
		lull_subject_attribute(&one);
		lull_why_share_out(why, &one);
		if (one.window_ns)
			put(why, &one);
	}
	lull_subject_release_one(&one);
}
