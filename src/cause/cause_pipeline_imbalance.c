/*
 * pipeline-imbalance: a stage of a pipeline waits for another one that has more to do.
 *
 * Signal:  most exposed collectives are sends and receives between two ranks, and another rank
 *          computes for much more of the step.
 * Not it:  the fill and drain of a balanced pipeline, in which all stages wait alike.
 */
#include "cause/cause.h"
#include "cause/evidence.h"

static bool claim(const struct lull_claim *c)
{
	return c->is_late && c->subject->ranks.is_pipeline;
}

const struct lull_cause lull_cause_pipeline_imbalance = {
	.id = "pipeline-imbalance",
	.title = "a pipeline stage waits for a busier one",
	.because = "this pipeline stage waits for a busier one",
	.why = "In a pipeline, stages send activations to each other; a stage with less work "
	       "waits in its receives. Time counts that a rank spends in exposed sends and "
	       "receives, if another rank computes at least 1.3 times as long in each step. This "
	       "needs all ranks in the recording, or their reports in one folder (lull-ranks(7)).",
	.fix = "move layers from the busiest stage to the others, or use more micro-batches",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_RANKS,
	.ranks = LULL_RANKS_STAGE,
	.names_unit = true,
	.needs = LULL_NEED_WORK | LULL_NEED_COLLECTIVE | LULL_NEED_RANKS,
	.claims_at = LULL_AT(COLLECTIVE),
	.claim = claim,
	.prove = lull_show_ranks,
};
