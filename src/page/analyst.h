/*
 * analyst - finds out why devices wait in reports that are too large to wait for it.
 *
 * The analysis takes about 120 bytes a kernel and half a second a million of them. So a process of
 * its own does it, at low priority, and tells what it found: the answers `verdict` and `steps`, and
 * idle time by cause. When it is done its memory is free again, and if it dies, of hunger or
 * otherwise, pictures and tables go on, and the verdict says what happened.
 *
 *	page->analyst = lull_analyst_start(page);	(before any thread exists)
 *	report->told					(page/page.h: what it told, under slow_lock)
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
