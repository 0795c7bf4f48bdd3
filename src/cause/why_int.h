/*
 * why_int - the parts of the answer, shared by the files of the answer.
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

/* "cudaStreamSynchronize, train.py:41  step in logging": what the time goes to, and where. */
void lull_why_describe(const struct lull_subject *s, const struct lull_where *where, char *to,
		       size_t cap);

/* The step with all of the cause gone; `scenario` as in struct lull_what_if. */
f64 lull_why_fixed_ns(const struct lull_why *why, enum lull_cause_ix cause, int scenario);

/* The step with all of two causes gone. */
f64 lull_why_both_ns(const struct lull_why *why, enum lull_cause_ix a, enum lull_cause_ix b);

/* Fill in the confidence of a finding: that it is what should come first. */
void lull_why_trust(const struct lull_why *why, struct lull_finding *f);

/* The confidence that a device which computes for this share of the step sets its length. */
f64 lull_why_trust_busy(const struct lull_why *why, f64 share);

/* Say whether the answer is a guess, and if so why; after the choice. */
void lull_why_doubt(struct lull_why *why);

/* The share of the time without compute that is not explained. */
f64 lull_why_blind_share(const struct lull_why *why);

/* Say that there is no answer since most of the time is not explained. False: it is not so. */
bool lull_why_cannot_see(struct lull_why *why);

/* Fill in why->missing. */
void lull_why_missing(struct lull_why *why);

/* Fill in the command that records what would tell: LULL_NEED_..., 0 for more steps. */
void lull_why_settle(struct lull_why *why, u32 needs);

/* The program as it was started, or PROGRAM. Borrowed. */
const char *lull_why_command(const struct lull_why *why);

/* The share of the work that has its call. */
f64 lull_why_linked(const struct lull_subject *s);

/* Say that there is no answer. */
void lull_why_cannot(struct lull_why *why, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Fill why->shares from this subject; nothing if it has no time. */
void lull_why_share_out(struct lull_why *why, const struct lull_subject *s);

/* Whether steps that do not count have work. */
bool lull_why_has_warm_up(const struct lull_subject *s);

/* Without steps: say what most of the GPU's time goes to (why->guess). */
void lull_why_guess(struct lull_why *why);

#endif
