/*
 * summary - the requests of a report in a few numbers: how long they take, and what for.
 */
#ifndef LULL_REQUEST_SUMMARY_H
#define LULL_REQUEST_SUMMARY_H

#include "request/requests.h"

/* Values of a quantity: each is one that occurred, none is interpolated. */
struct lull_quantiles {
	u64 p50_ns, p90_ns, p99_ns, max_ns;
	f64 mean_ns;
	size_t n; /* 0: nothing is known */
};

/* How often requests come, and how many there are at a time. */
struct lull_request_load {
	f64 rate_hz;	  /* arrivals a second, from the first to the last */
	f64 n_mean;	  /* requests that are open, on average over time */
	u32 n_max;	  /* and at most */
	f64 busy_share;	  /* of the device, from the first arrival to the last end, 0 to 1 */
	f64 thread_share; /* of the thread that works most for requests */
	/*
	 * Requests a second at which the device or that thread is busy all the time, whichever is
	 * first; 0 if not known.
	 */
	f64 limit_hz;
	bool is_device; /* it is the device */
};

/* Requests of one name. */
struct lull_request_group {
	u32 name; /* label */
	struct lull_quantiles latency;
};

struct lull_request_summary {
	struct lull_quantiles latency, first_token, between;
	struct lull_request_load load;
	f64 part_mean_ns[LULL_N_REQUEST_PARTS]; /* of all: they add up to latency.mean_ns */
	/* Of those between the quartiles, and of the slowest tenth. */
	f64 part_typical_ns[LULL_N_REQUEST_PARTS], part_slow_ns[LULL_N_REQUEST_PARTS];
	size_t n_typical, n_slow;
	/* Until the first token, of all that have tokens: they add up to first_token.mean_ns. */
	f64 part_prefill_ns[LULL_N_REQUEST_PARTS];
	struct lull_vec groups; /* struct lull_request_group, most requests first */
};

/* Compute it. */
void lull_request_summary_init(struct lull_request_summary *s, const struct lull_requests *q);

/* Free it. */
void lull_request_summary_release(struct lull_request_summary *s);

/* The smallest of the n sorted values that a share `p` of them does not exceed. */
u64 lull_quantile(const u64 *sorted, size_t n, f64 p);

#endif
