/*
 * page_open - what a page shows first: a few steady steps, the device they run on and the threads
 * that start its work. The analysis decides, so that the picture is about what the sentence says.
 */
#ifndef LULL_PAGE_PAGE_OPEN_H
#define LULL_PAGE_PAGE_OPEN_H

#include "page/page.h"

/*
 * "open": {"from", "to", "n_steps", "steady_from", "steady_to", "device": key,
 * "threads": [keys of those that launch], "active": [keys of those that did something in the steady
 * steps]}. The analysis must have ended and have a lead; takes quick_lock.
 */
void lull_page_put_open(struct lull_json *j, struct lull_page_report *report);

/*
 * The steady steps, from the first to the last; false if the analysis has not ended here or found
 * none. Under slow_lock.
 */
bool lull_page_steady(struct lull_page_report *report, struct lull_span *span);

/*
 * The key of the thread that starts most of the work in the steps that the page opens on, and these
 * steps; NULL if the analysis has not ended here or found no such thread. Under slow_lock.
 */
const char *lull_page_opening(struct lull_page_report *report, struct lull_span *view);

#endif
