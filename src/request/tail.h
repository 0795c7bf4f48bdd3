/*
 * tail - why slow requests are slow: what they have more of than typical ones.
 *
 * Slow:           takes more than LULL_SLOW_FACTOR of the median.
 * Explained by:   the part of its time that exceeds the median of that part most, if that is
 *                 LULL_TAIL_SHARE or more of what the request takes longer than the median.
 * Tested:         slow and other requests are counted by whether they have that much of the part.
 *                 The chance to see this by accident (Fisher's exact test, one-sided, times the
 *                 number of parts that can pass it, by Tarone) has to be below LULL_TAIL_CHANCE. Of
 *                 the parts that pass, the one that adds most time is a cause; its requests are set
 *                 aside, and the others are tested again.
 */
#ifndef LULL_REQUEST_TAIL_H
#define LULL_REQUEST_TAIL_H

#include "request/requests.h"
#include "request/summary.h"

#define LULL_SLOW_FACTOR 1.5
#define LULL_TAIL_SHARE	 0.5
#define LULL_TAIL_CHANCE 0.01

/* Fewer requests than this say nothing about a tail. */
#define LULL_TAIL_MIN 20u

struct lull_tail_cause {
	enum lull_request_part part;
	u32 n_slow;   /* slow requests that it explains */
	u32 n_usual;  /* others that have as much of it */
	f64 chance;   /* that this is an accident, 0 to 1 */
	f64 n_open;   /* requests that were open when these arrived, on average */
	f64 extra_ns; /* what it adds to those that it explains, on average */
	u32 example;  /* the slowest of them: index in the requests */
	u64 p99_ns;   /* of all requests without what it adds */
};

struct lull_request_tail {
	struct lull_vec causes; /* struct lull_tail_cause, those that add most time first */
	size_t n_slow;
	size_t n_unexplained; /* of them */
	u32 usual;	      /* a typical request to compare with: index in the requests */
	f64 n_open;	      /* requests open when one arrived that is not slow, on average */
	/* The slowest without a cause, if there is one, and what it has more of; -1 for nothing. */
	u32 rest;
	int rest_part;
	u64 rest_ns;
	bool is_known; /* there are enough requests to say */
};

/* Compute it. */
void lull_request_tail_init(struct lull_request_tail *t, const struct lull_requests *q,
			    const struct lull_request_summary *s);

/* Free it. */
void lull_request_tail_release(struct lull_request_tail *t);

/* What slow requests suffer from, for a sentence; and what to do about it. */
const char *lull_request_tail_title(const struct lull_request_tail *t,
				    const struct lull_tail_cause *c);
const char *lull_request_tail_fix(const struct lull_request_tail *t,
				  const struct lull_tail_cause *c);

#endif
