/*
 * links - from a call to the work it started, and back.
 *
 * Looked up in the blocks around the event, not in a table of all calls: that would take 40 bytes a
 * call, and one click needs one link.
 */
#ifndef LULL_PAGE_LINKS_H
#define LULL_PAGE_LINKS_H

#include "base/json.h"
#include "page/page.h"
#include "timeline/detail.h"

/* Write "links": [{lane, start, end, name, kind}, ...] of an event, at most 50. */
void lull_links_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found);

#endif
