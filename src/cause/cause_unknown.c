/*
 * unknown: time without a known cause, and what the recording lacks to find it.
 *
 * Signal:  none; it gets what no other cause claims: work without a call, work that was held back
 *          on the device for longer than 20 us, time of the thread that was not recorded and that
 *          does not recur, stalls that are too few to judge.
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
		("work held back on the device by something not recorded: an event of another "
		 "stream, kernels, another process or rank"),
		"the thread did something that was not recorded: record samples or ranges",
		"stalls, too few to judge: record more steps",
		("before and between kernels of CUDA graphs that were launched long before; other "
		 "kernels of these graphs seem to be missing: record each node"),
	};
	const struct lull_subject *s = why->lead;

	for (int i = 0; i < LULL_N_BLINDS; i++) {
		if ((f64)s->blind_ns[i] >=
		    LULL_T(line_share) * (f64)s->cost_ns[LULL_CAUSE_IX_unknown])
			lull_show(f, NULL, NULL, "%s/step: %s",
				  lull_why_time((f64)s->blind_ns[i] / lull_why_n_steps(why)).text,
				  texts[i]);
	}
}

const struct lull_cause lull_cause_unknown = {
	.id = "unknown",
	.title = "cannot be determined from this recording",
	.because = "of something that this recording does not show",
	.why = "Time that no other cause explains, with what is missing in the recording: the "
	       "CUDA calls of the work; the stream, process or rank that held work back on the "
	       "device; what the thread did (record samples, ranges, C library calls); more "
	       "steps, to distinguish a stall from a regular delay. This time is never reported "
	       "as healthy.",
	.fix = "record more: `lull profile` with its defaults, and more steps",
	.kind = LULL_CAUSE_BLIND,
	.places = LULL_PLACES_NONE,
	.is_default = true,
	.claim = claim,
	.prove = prove,
};
