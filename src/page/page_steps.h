/*
 * page_steps - the steps of a report, as all parts of the page count them.
 *
 * Those of the recording, as `lull stats` and `lull query` list them. Where `lull why` found
 * others, these, from the device's view: a host that runs ahead begins them long before the device
 * does, and the page shows a step above its kernels. As long as a large report is not analysed,
 * they are those of the recording alone.
 */
#ifndef LULL_PAGE_PAGE_STEPS_H
#define LULL_PAGE_PAGE_STEPS_H

#include "page/page.h"
#include "timeline/fold.h"

struct lull_page_step {
	u64 number;
	struct lull_span span;
	u64 busy_ns; /* with work on any device of the process */
	u64 idle_ns[LULL_N_CLASSES];
	u64 rest_ns; /* what no cause claims (page/answer_steps.c) */
};

/* Collect them (struct lull_page_step) by time, without causes; `steps` is initialised here. */
void lull_page_steps(struct lull_page_report *report, struct lull_vec *steps);

#endif
