/*
 * ahead - a thread that decodes what the next view will need while no request is waiting.
 *
 * A view that is finer than the levels of detail needs blocks of the report, a millisecond or two
 * each. Users pan and zoom in small moves, so the blocks around the last view are decoded before
 * they are requested. Requests always have priority: the thread takes a report's quick_lock for one
 * block at a time, and only while no request waits for it.
 *
 *	lull_ahead_start(&page->ahead, page);
 *	lull_ahead_begin(page->ahead);		(a request arrives)
 *	lull_ahead_end(page->ahead);		(it is answered)
 *	lull_ahead_stop(page->ahead);
 */
#ifndef LULL_PAGE_AHEAD_H
#define LULL_PAGE_AHEAD_H

struct lull_page;
struct lull_ahead;

/* Start the thread; NULL if there is none to be had: everything works without it. */
struct lull_ahead *lull_ahead_start(struct lull_page *page);

/* A question begins or ends. Both accept NULL. */
void lull_ahead_begin(struct lull_ahead *a);
void lull_ahead_end(struct lull_ahead *a);

/* End the thread and free it. Accepts NULL. */
void lull_ahead_stop(struct lull_ahead *a);

#endif
