/*
 * links - how an event is related to others: the call that launched it, the work it launched, what
 * it waited for, what waited for it.
 *
 * Found in the blocks around the event, not in a table of all calls: that would take 40 bytes per
 * call, and one click needs one link.
 */
#ifndef LULL_PAGE_LINKS_H
#define LULL_PAGE_LINKS_H

#include "text/json.h"
#include "page/page.h"
#include "timeline/detail.h"

/* What the other event is to the one that was asked about. */
enum lull_relation {
	LULL_IS_CALL,	  /* launched it */
	LULL_IS_WORK,	  /* was launched by it */
	LULL_IS_AWAITED,  /* its end let a wait go on */
	LULL_IS_WAITER,	  /* waited for it */
	LULL_IS_PRODUCER, /* another thread that worked while it waited */
	LULL_IS_NEXT,	  /* the work that ended an idle time */
};

struct lull_page_link {
	struct lull_found found;
	enum lull_relation relation;
};

/*
 * The call that launched a piece of work, into *call; false, and nothing changed, if it has none.
 */
bool lull_links_call(struct lull_timeline *t, const struct lull_found *found,
		     struct lull_found *call);

/* Write "links": [{lane, start, end, name, kind, rel}, ...] of an event, at most 50. */
void lull_links_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found);

#endif
