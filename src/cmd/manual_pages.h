/*
 * manual_pages - the manual pages of doc/, embedded by tools/embed-pages at build time.
 */
#ifndef LULL_CMD_MANUAL_PAGES_H
#define LULL_CMD_MANUAL_PAGES_H

struct lull_manual_page {
	const char *name; /* "lull-doctor.1" */
	const char *text; /* Markdown */
};

/* All pages, ended by an entry without a name. */
extern const struct lull_manual_page lull_pages[];

#endif
