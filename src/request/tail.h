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
 * Behind:         a slow request that waits for its turn, for most of what it takes too long behind
 *                 one that another cause explains, is slow for that one's cause.
 */
#ifndef LULL_REQUEST_TAIL_H
#define LULL_REQUEST_TAIL_H

#include "request/requests.h"
#include "request/summary.h"

#define LULL_SLOW_FACTOR 1.5
#define LULL_TAIL_SHARE	 0.5
#define LULL_TAIL_CHANCE 0.01

/* From this share on, who serves requests mostly waits. */
#define LULL_TAIL_WAITING 0.5

/* Requests that arrive while fewer others than this are open, on average, wait for none of them. */
#define LULL_TAIL_ALONE 0.5

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
	/* Slow requests that wait for their turn behind these, and how long on average. */
	u32 n_behind;
	f64 behind_ns;
	bool is_on_thread; /* most wait for a thread that these have; else for a device */
	/* The function that most samples of it are in, by one of its frames; 0 if not known. */
	u32 frame;
	u32 n_there, n_samples;
};

struct lull_request_tail {
	struct lull_vec causes; /* struct lull_tail_cause, those that add most time first */
	size_t n_slow;
	size_t n_unexplained; /* of them */
	u32 usual;	      /* a typical request to compare with: index in the requests */
	f64 n_open;	      /* requests open when one arrived that is not slow, on average */
	f64 wait_share;	      /* of the time in which requests are served: for something else */
	/* The slowest without a cause, if there is one, and what it has more of; -1 for nothing. */
	u32 rest;
	int rest_part;
	u64 rest_ns;
	bool is_known; /* there are enough requests to say */
};

/* Compute it. */
void lull_request_tail_init(struct lull_request_tail *t, const struct lull_requests *q,
			    const struct lull_request_summary *s);

/*
 * Which requests wait behind those that a cause explains: behind[i] is the index of that one, or
 * UINT32_MAX. `because` has the part that explains each request, or -1; median_ns that of parts.
 */
void lull_request_tail_behind(u32 *behind, bool *is_on_thread, const struct lull_requests *q,
			      const int *because, const u64 *median_ns);

/* Where the requests of a cause spend its time. */
void lull_request_tail_place(struct lull_tail_cause *c, const struct lull_requests *q,
			     const int *because);

/* A frame in the function that most samples of late_ns are in, 0 if there is none. */
u32 lull_request_late_frame(const struct lull_requests *q);

/* Free it. */
void lull_request_tail_release(struct lull_request_tail *t);

/* What slow requests suffer from, for a sentence; and what to do about it. */
const char *lull_request_tail_title(const struct lull_request_tail *t,
				    const struct lull_tail_cause *c);
const char *lull_request_tail_fix(const struct lull_request_tail *t,
				  const struct lull_tail_cause *c);

#endif
