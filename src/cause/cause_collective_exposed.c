/*
 * collective-exposed: ranks exchange data while nothing computes.
 *
 * Signal:  a collective runs on the device, and no other kernel.
 * Not it:  a collective under the backward pass; the part of it that waits for a rank that is late
 *          (straggler, pipeline-imbalance).
 */
#include "cause/cause.h"
#include "cause/evidence.h"
#include "cause/replay/replay.h"

static bool claim(const struct lull_claim *c)
{
	return c->place == LULL_PLACE_COLLECTIVE;
}

static bool is_collective(const struct lull_what_if *w, u32 op)
{
	return w->replay->subject->units.at[w->ops[op].unit].kind == LULL_UNIT_COLLECTIVE;
}

/* On a stream of their own, beside all that computes; they still take their time one by one. */
static void apply(struct lull_what_if *w)
{
	u16 aside = (u16)w->replay->subject->units.lanes.n;

	for (u32 i = 0; i < w->n_ops; i++) {
		u32 after = w->ops[i].after;

		if (is_collective(w, i) || (after != LULL_NONE && is_collective(w, after)))
			w->ops[i].after = LULL_NONE;
		if (!is_collective(w, i))
			continue;
		w->ops[i].stream = aside;
	}
}

static const char *table(const struct lull_subject *s)
{
	(void)s;
	return "kernel";
}

static void prove(struct lull_why *why, struct lull_finding *f)
{
	if (why->n_subjects < 2)
		lull_show(f, "kernel", NULL,
			  "how much of it is a wait for a late rank cannot be seen from one rank: "
			  "`lull why FOLDER`, with the reports of all, says");
}

const struct lull_cause lull_cause_collective_exposed = {
	.id = "collective-exposed",
	.title = "ranks exchange data while nothing computes",
	.because = "it exchanges data with other ranks while nothing computes",
	.why = "Kernels of NCCL and similar libraries are recognised by their names. Their time "
	       "counts where no other kernel runs. It consists of the transfer and of waiting "
	       "for the last rank. If all ranks are in the recording, or their reports are in "
	       "one folder, the waiting is attributed to straggler or pipeline-imbalance; with "
	       "one rank alone it cannot be separated. The prediction overlaps collectives with "
	       "computation: the step then takes as long as the longer of the two.",
	.fix = "exchange data in pieces on a separate stream while the next ones are computed; "
	       "send fewer bytes",
	.fix_torch = "smaller or larger buckets so that the exchange overlaps the backward pass, "
		     "gradient_as_bucket_view, fewer bytes (bf16, sharding)",
	.assumes = "the whole exchange can overlap the backward pass, and no other rank gets "
		   "slower",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_RANKS,
	.ranks = LULL_RANKS_EXCHANGE,
	.names_unit = true,
	.is_ceiling = true,
	.needs = LULL_NEED_WORK | LULL_NEED_COLLECTIVE,
	.claims_at = LULL_AT(COLLECTIVE),
	.claim = claim,
	.apply = apply,
	.table = table,
	.prove = prove,
};
