/*
 * cpu-offload: the CPU computes on tensors between launches.
 *
 * Signal:  in a gap of at least 150 us the thread is in an operator of the framework that makes no
 *          CUDA call and takes at least 150 us, or most native samples are in kernels for CPUs.
 * Not it:  loading, and work that makes the next batch: no data came from the device for it, and it
 *          is in no module of the program (input-pipeline); the framework's operators around
 *          launches.
 */
#include <string.h>

#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"
#include "model/thread/doing.h"
#include "model/words.h"
#include "cause/thresholds.h"

/* Whether the thread is in an operator that computes by itself. */
static bool is_in_op(const struct lull_claim *c)
{
	const struct lull_host *h = &c->subject->host;
	const struct lull_host_event *events = h->events.at;

	for (u32 e = c->event; e != LULL_NONE; e = events[e].parent) {
		const char *name;

		if (events[e].kind != LULL_HOST_OP)
			continue;
		if (events[e].n_calls)
			return false;
		name = lull_host_name(&events[e], c->subject->reader);
		if (events[e].end_ns - events[e].begin_ns >= LULL_TN(cpu_op_ns) &&
		    !lull_op_bits(name))
			return true;
	}
	return false;
}

/* Whether a module of PyTorch is called here: what it computes is the model's, whatever follows. */
static bool is_in_forward(const struct lull_claim *c)
{
	const struct lull_host_event *events = c->subject->host.events.at;

	for (u32 e = c->event; e != LULL_NONE; e = events[e].parent)
		if (events[e].kind == LULL_HOST_RANGE && events[e].is_hook &&
		    !strcmp(lull_host_name(&events[e], c->subject->reader), "forward"))
			return true;
	return false;
}

static bool claim(const struct lull_claim *c)
{
	struct lull_claim plain = *c;

	plain.inside &= ~(u32)LULL_IN_LOADER;
	if ((c->inside & LULL_IN_CPU_OP) && lull_claim_is_other(&plain) && is_in_forward(c))
		return true;
	if (!lull_claim_is_other(c) || (c->leads_in && !c->came_out))
		return false;
	return (c->inside & LULL_IN_CPU_OP) || is_in_op(c);
}

static void apply(struct lull_what_if *w)
{
	lull_what_if_drop_trips(w, LULL_CAUSE_IX_cpu_offload);
	lull_what_if_drop_made(w, LULL_CAUSE_IX_cpu_offload);
	for (u32 i = 0; i < w->n; i++)
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_cpu_offload);
}

const struct lull_cause lull_cause_cpu_offload = {
	.id = "cpu-offload",
	.title = "the CPU computes on tensors while the device waits",
	.because = "the CPU computes on tensors that the device could compute on",
	.why = "An optimizer or a metric on the CPU needs data from the device, computes on it "
	       "slowly, and sends it back, while the device is idle. Counted are gaps of at least "
	       "150 us in which the thread is in an operator without CUDA calls that takes at "
	       "least 150 us, or in which more than half of the native samples are in kernels "
	       "for CPUs (vectorised loops of PyTorch, OpenMP, MKL, oneDNN). A batch that is made "
	       "so is input-pipeline, unless a module of the program makes it. The prediction "
	       "removes them, the copies for them, and the memory for what they make: it leaves "
	       "out what the same work takes on the device, and copies of what it is done on, "
	       "where that does not come from the device.",
	.fix = "keep the data on the device and compute there",
	.fix_torch = "keep tensors and modules on the device (.to(device); no .cpu() before the "
		     "computation); a fused optimizer on the device instead of one on the CPU",
	.assumes = "the device does it in no time",
	.kind = LULL_CAUSE_SPECIFIC,
	.nowhere = "on the CPU between CUDA calls",
	.family = LULL_FAMILY_HOST,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS | LULL_NEED_HOST,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.apply = apply,
	.prove = lull_show_samples,
};
