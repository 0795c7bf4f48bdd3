/*
 * copies: data is copied while nothing computes, although the device is busy most of the time.
 *
 * Signal:  time in which only copies between host and device run.
 * Not it:  copies beside kernels, which are as they should be.
 */
#include <stdio.h>

#include "cause/opportunity.h"

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	o->touched_ns = l->why->copy_share * l->why->step_ns;
	snprintf(o->text, sizeof(o->text),
		 "copies run alone for %.2f ms of each step; they could run beside kernels",
		 o->touched_ns / 1e6);
	return o->touched_ns > 0;
}

static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	(void)l;
	lull_causes[LULL_CAUSE_IX_pageable_copy]->apply(w);
	lull_causes[LULL_CAUSE_IX_exposed_copy]->apply(w);
}

const struct lull_opportunity_kind lull_opportunity_copies = {
	.id = "copies",
	.title = "copies that nothing computes beside",
	.why = "As the causes pageable-copy and exposed-copy together: pinned memory, and copies "
	       "on a stream of their own.",
	.fix = "pinned memory, and copies of the next batch on a second stream",
	.fix_torch = "pin_memory=True and .to(device, non_blocking=True) on a second stream, one "
		     "batch ahead",
	.assumes = "the data of the next step is ready one step earlier",
	.causes = "pageable-copy exposed-copy",
	.look = look,
	.apply = apply,
};
