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

#endif
