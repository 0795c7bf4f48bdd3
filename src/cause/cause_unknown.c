/*
 * unknown: what cannot be told, and what was missing to tell.
 *
 * Signal:  none; it takes what nobody claims: work without a call, work that was held on the device
 *          for longer than 20 us, time of the thread that nobody recorded and that does not recur,
 *          stalls that are too few to judge.
 * Not it:  anything with a cause.
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/thresholds.h"

static bool claim(const struct lull_claim *c)
{
	(void)c;
	return true;
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	static const char *const texts[LULL_N_BLINDS] = {
		"work without a CUDA call in the recording",
		("work held on the device by what is not recorded: another stream's event, "
		 "process, "
		 "rank"),
		"the thread did something that nobody recorded: samples or ranges would tell",
		"stalls that are too few to judge: more steps would tell",
	};
	const struct lull_subject *s = why->lead;

	for (int i = 0; i < LULL_N_BLINDS; i++) {
		if ((f64)s->blind_ns[i] >=
		    LULL_T(line_share) * (f64)s->cost_ns[LULL_CAUSE_IX_unknown])
			lull_show(f, NULL, NULL, "%.2f ms/step: %s",
				  (f64)s->blind_ns[i] / lull_why_n_steps(why) / 1e6, texts[i]);
	}
}

const struct lull_cause lull_cause_unknown = {
	.id = "unknown",
	.title = "cannot be told from this recording",
	.because = "of something that this recording does not show",
	.why = "Time that nobody claims, with what was missing: the CUDA calls of the work; the "
	       "other "
	       "stream, process or rank that held work on the device; what the thread did (record "
	       "samples, ranges, calls of the C library); more steps, to tell a stall from a "
	       "habit. It "
	       "is never shown as healthy.",
	.fix = "record more: `lull profile` with its defaults, and more steps",
	.kind = LULL_CAUSE_BLIND,
	.places = LULL_PLACES_NONE,
	.is_default = true,
	.claim = claim,
	.prove = prove,
};
