/*
 * evidence - the lines with which causes prove a finding, each with the rows that show it.
 *
 * The prove() of a cause calls these functions. The places of its time and its advice are already
 * filled in; prove() may replace the advice.
 */
#ifndef LULL_CAUSE_EVIDENCE_H
#define LULL_CAUSE_EVIDENCE_H

#include "cause/why.h"

/*
 * Add a line. `table` has the rows that show it, or is NULL; `where` says where to look, or NULL.
 */
void lull_show(struct lull_finding *f, const char *table, const struct lull_where *where,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* "2", "2.5", "1,234": how many of something there are. */
struct lull_number lull_show_count(f64 n);

/* "once per step", "2.5 times per step", "every second step", "once in 10 steps" */
struct lull_number lull_show_often(f64 per_step);

/* Add number, size and speed of the copies of a direction, if there are any. */
void lull_show_copies(struct lull_why *why, struct lull_finding *f, bool is_pageable, u8 direction);

/* Add how many gaps and calls are stalls, if that is what they were judged by. */
void lull_show_stalls(struct lull_why *why, struct lull_finding *f);

/* Add the kernels that take most of the time. */
void lull_show_kernels(struct lull_why *why, struct lull_finding *f);

/* How rows of memory-bound kernels become one (fuse.c); NULL: as the cause and its like say. */
const char *lull_how_to_fuse(const struct lull_subject *s);

/* Add which rank the others wait for, and what holds that one up. */
void lull_show_ranks(struct lull_why *why, struct lull_finding *f);

/* Add the thread, of any process, that ran most while this one waited. False: none was seen. */
bool lull_show_producer(struct lull_why *why, struct lull_finding *f);

/* The same by the scheduler's records, where no sample found it: threads of this process alone. */
bool lull_show_runner(struct lull_why *why, struct lull_finding *f);

/*
 * Add the thread that ends the waits of this one, and what it waits for itself, and advise what to
 * do about that. False: none is.
 */
bool lull_show_giver(struct lull_why *why, struct lull_finding *f);

/* Add how many samples of the launching threads are in which functions of the program. */
void lull_show_samples(struct lull_why *why, struct lull_finding *f);

/*
 * Whether most native samples that the launching threads have while a cause holds are in Python's
 * interpreter itself: code that goes over items one by one, not over arrays.
 */
bool lull_samples_interpreted(const struct lull_subject *s, enum lull_cause_ix cause);

/* The same for code of a library, with `part` in its name, and for what that calls. */
bool lull_samples_of(const struct lull_subject *s, enum lull_cause_ix cause, const char *part);

/* Advise what others have to do (fix_more of the cause), instead of the thread. */
void lull_advise_others(const struct lull_why *why, struct lull_finding *f);

/* Whether the thread waits where the finding has most of its time, rather than works. */
bool lull_finding_waits(const struct lull_why *why, const struct lull_finding *f);

#endif
