/*
 * page_steps - the steps of a report, as all parts of the page count them.
 *
 * Those of the recording, if `lull why` looks at them, too; else those that it found. A last step
 * that nothing ended ends with its work.
 */
#ifndef LULL_PAGE_PAGE_STEPS_H
#define LULL_PAGE_PAGE_STEPS_H

#include "page/page.h"
#include "timeline/fold.h"

struct lull_page_step {
	u64 number;
	struct lull_span span;
	u64 busy_ns; /* as the devices say */
	u64 idle_ns[LULL_N_CLASSES];
};

/* Collect them (struct lull_page_step) by time, without causes; `steps` is initialised here. */
void lull_page_steps(struct lull_page_report *report, struct lull_vec *steps);

#endif
