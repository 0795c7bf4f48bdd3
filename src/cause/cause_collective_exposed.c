/*
 * collective-exposed: ranks exchange data, and nothing computes beside it.
 *
 * Signal:  a collective runs on the device, and no other kernel.
 * Not it:  a collective under the backward pass; the part of it that waits for a rank that is late
 *          (straggler, pipeline-imbalance).
 */
#include "cause/cause.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_COLLECTIVE;
}

const struct lull_cause lull_cause_collective_exposed = {
	.id = "collective-exposed",
	.title = "ranks exchange data, and nothing computes beside it",
	.because = "it exchanges data with other ranks, and nothing computes beside it",
	.why = "Kernels of NCCL and its like are told by their names. Their time counts where no "
	       "other "
	       "kernel runs. It is transfer plus waiting for the last rank; with all ranks in the "
	       "recording, or their reports in one folder, the waiting is taken apart (straggler, "
	       "pipeline-imbalance), with one "
	       "rank it "
	       "cannot be. There is no prediction from one rank.",
	.fix = "exchange data in pieces on a stream of their own, while the next ones are "
	       "computed; fewer bytes",
	.fix_torch = "smaller or larger buckets so that it overlaps the backward pass, "
		     "gradient_as_bucket_view, fewer bytes (bf16, sharding)",
	.kind = LULL_CAUSE_SPECIFIC,
	.needs = LULL_NEED_WORK | LULL_NEED_COLLECTIVE,
	.claim = claim,
};
