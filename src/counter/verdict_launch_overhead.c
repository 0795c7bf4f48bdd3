/*
 * launch-overhead: the kernel is over before the chip has begun to work.
 *
 * Signal:  it takes less than 10 us, and for more than a third of that no multiprocessor had work;
 *          or it takes less than 4 us, which an empty kernel takes as well.
 * Not it:  a short kernel that keeps the memory or a pipe busy.
 */
#include <math.h>

#include "counter/judge.h"

/* An empty kernel takes 1.5 to 2.5 us on an H200 by the same counter. */
#define SHORT_NS 4000
/* Up to here starting and ending is worth looking at. */
#define BRIEF_NS 10000
/* Of a range: less is the way from one kernel to the next. */
#define GAP_SHARE 0.34

/* A range has gaps between its kernels; no kernel can be made faster where none runs. */
static bool claim_gaps(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 covered = lull_k_of(c->p, LULL_K_covered_share);

	if (!(covered < 100 * (1 - GAP_SHARE)))
		return false;
	claim->title = "between its kernels the device has nothing to do";
	claim->gain = covered > 0 ? 100 / covered : NAN;
	lull_prove(claim, "no multiprocessor had work in %.0f %% of the range", 100 - covered);
	lull_prove(claim, "%u launches in %s", c->p->n_launches,
		   lull_k_format((f64)c->p->dur_ns, "ns").text);
	lull_advise(claim, "launch ahead of the device: no waiting inside the range, CUDA graphs, "
			   "fused kernels; lull why says what the host did meanwhile");
	return true;
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	f64 covered = lull_k_of(c->p, LULL_K_covered_share);
	u64 dur_ns = c->p->dur_ns;
	bool is_brief = dur_ns < BRIEF_NS && covered < 66;

	if (lull_profile_is_range(c->p))
		return claim_gaps(c, claim);
	if (!dur_ns || (dur_ns >= SHORT_NS && !is_brief) || c->loads.top >= LULL_BUSY)
		return false;
	claim->gain = covered > 0 ? 100 / covered : NAN;
	lull_prove(claim, "it takes %s, about as long as starting any kernel does",
		   lull_k_format((f64)dur_ns, "ns").text);
	if (!isnan(covered))
		lull_prove(claim, "some multiprocessor had work in %.0f %% of that", covered);
	lull_advise(claim, "do more in one launch: fuse it with its neighbours (torch.compile), "
			   "larger batches; CUDA graphs make the launches themselves cheaper");
	return true;
}

const struct lull_kverdict lull_verdict_launch_overhead = {
	.id = "launch-overhead",
	.title = "it ends before the chip has started to work",
	.why = "Starting and ending a kernel takes 2 to 4 us, whatever it does. A kernel shorter "
	       "than 4 us, or one of up to 10 us in which no multiprocessor had work for a third "
	       "of the time, pays mostly for that. Of a range: no multiprocessor had work in a "
	       "third "
	       "of it, so that it waits for launches.",
	.stage = LULL_STAGE_SHAPE,
	.claim = claim,
};
