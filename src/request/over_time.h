/*
 * over_time - the load of a server over time: arrivals, requests that are open, and those that wait
 * for their turn.
 */
#ifndef LULL_REQUEST_OVER_TIME_H
#define LULL_REQUEST_OVER_TIME_H

#include "request/requests.h"

struct lull_request_interval {
	u64 from_ns, to_ns;
	u32 n_arrived;
	f64 n_open;    /* on average over the interval */
	f64 n_waiting; /* of them, those in the queue or that wait for other requests */
	u64 p50_ns;    /* median latency of those that arrived, 0 if there are none */
	u64 max_ns;
};

/*
 * Cut the time from the first arrival to the last end into `n` intervals of the same length, and
 * fill `to` (struct lull_request_interval). The requests must have their pieces
 * (LULL_REQUESTS_WANT_PIECES).
 */
void lull_request_intervals(struct lull_vec *to, const struct lull_requests *q, u32 n);

#endif
