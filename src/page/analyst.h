/*
 * analyst - analyses why devices wait, in the background, for large reports.
 *
 * The analysis takes about 120 bytes per kernel and half a second per million of them. So a
 * separate process does it, at low priority, and sends the results: the answers `verdict` and
 * `steps`, and idle time by cause. When it is done its memory is freed. If it dies, because memory
 * ran out or otherwise, pictures and tables still work, and the verdict says what happened.
 *
 *	page->analyst = lull_analyst_start(page);	(before any thread exists)
 *	report->told					(page/page.h: its results, under slow_lock)
 *	lull_analyst_stop(page->analyst);
 */
#ifndef LULL_PAGE_ANALYST_H
#define LULL_PAGE_ANALYST_H

struct lull_page;
struct lull_page_report;
struct lull_analyst;

/* Start it if a report of the page is large; NULL if none is, or if it cannot be started. */
struct lull_analyst *lull_analyst_start(struct lull_page *page);

/* End it, done or not. Accepts NULL. */
void lull_analyst_stop(struct lull_analyst *a);

#endif
