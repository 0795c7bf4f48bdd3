/*
 * page_open - what a page shows first: a few steady steps, the device they run on and the threads
 * that start its work. The analysis decides, so that the picture is about what the sentence says.
 */
#ifndef LULL_PAGE_PAGE_OPEN_H
#define LULL_PAGE_PAGE_OPEN_H

#include "page/page.h"

/*
 * "open": {"from", "to", "n_steps", "steady_from", "steady_to", "device": key,
 * "threads": [keys, most launches first]}.
 * The analysis must have ended and have a lead.
 */
void lull_page_put_open(struct lull_json *j, const struct lull_page_report *report);

#endif
