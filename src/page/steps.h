/*
 * steps - the steps of a report, recorded or found.
 */
#ifndef LULL_PAGE_STEPS_H
#define LULL_PAGE_STEPS_H

#include "page/page.h"

/* The time of the steps FIRST[-LAST]; LULL_E_NOT_FOUND if there are none of these numbers. */
int lull_page_step_span(struct lull_page_report *report, const char *text, struct lull_span *span,
			struct lull_err *err);

#endif
