/*
 * why_int - the parts of the answer, shared by why.c, choose.c, ranks.c and evidence.c.
 */
#ifndef LULL_CAUSE_WHY_INT_H
#define LULL_CAUSE_WHY_INT_H

#include "cause/why.h"

/* Let ranks say about each other who waits for whom; before time is attributed. */
void lull_why_ranks(struct lull_subject *subjects, u32 n);

/* Fill why->findings with costs, gains and predictions, and why->first with the answer. */
void lull_why_choose(struct lull_why *why);

/* Fill in what proves each finding, and where it is. */
void lull_why_evidence(struct lull_why *why);

/* The step with `factor` of the cause taken away; `scenario` as in struct lull_what_if. */
f64 lull_why_replay(const struct lull_replay *p, const struct lull_cause *cause, f64 factor,
		    int scenario);

/* Say that there is no answer. */
void lull_why_cannot(struct lull_why *why, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
