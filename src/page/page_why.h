/*
 * page_why - the answer of `lull why` for a page: computed once, kept, and put on the timeline.
 *
 * Idle time on the timeline gets its cause from it. The analysis takes about 120 bytes per kernel,
 * so a separate process does it for large reports (page/analyst.h).
 *
 * Threads:        under the report's slow_lock; putting causes on the timeline takes quick_lock.
 */
#ifndef LULL_PAGE_PAGE_WHY_H
#define LULL_PAGE_PAGE_WHY_H

#include "cause/why.h"
#include "page/page.h"

/* What there is to say. */
enum lull_page_why_state {
	LULL_PAGE_WHY_NEVER,  /* not asked yet */
	LULL_PAGE_WHY_LARGE,  /* not here: report->told says how far it is */
	LULL_PAGE_WHY_FAILED, /* report->why_failed says why */
	LULL_PAGE_WHY_DONE,   /* report->why */
};

/* Analyse, unless that was done or the report is large and `is_forced` is not set. */
enum lull_page_why_state lull_page_why(struct lull_page_report *report, bool is_forced);

/* Whether the report has too much work to be analysed while the user waits. */
bool lull_page_why_is_large(const struct lull_page_report *report);

/* The idle time of a subject by cause, as pieces (struct lull_idle) of the timeline. */
void lull_page_pieces(const struct lull_subject *s, struct lull_vec *pieces);

/* The steps of a report (struct lull_tl_round); `rounds` is initialised here. */
void lull_page_rounds(struct lull_page_report *report, struct lull_vec *rounds);

/* Put them on the timeline. */
void lull_page_show_rounds(struct lull_page_report *report, const struct lull_vec *rounds);

/* Free what was found. */
void lull_page_why_release(struct lull_page_report *report);

/* The family of a cause: its colour. */
u8 lull_page_family(enum lull_cause_ix cause);

#endif
