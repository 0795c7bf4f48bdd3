/*
 * load_replay - what more replicas, batches or load would do to latency, by replay.
 *
 * Model:          requests arrive as recorded and are served in that order by a number of servers.
 *                 A request needs one of them for its service time: its latency without the time in
 *                 which it waited for its turn or for other requests.
 * Held to:        what was recorded. The number of servers is the one whose replay has the average
 *                 latency nearest to the recorded one; if that is off by more than
 *                 LULL_REPLAY_OFF, nothing is said. Nor is it where requests wait for less than
 *                 LULL_REPLAY_WAIT of their time: then nobody knows how many there is room for.
 * Batches:        a server takes all requests that wait, up to LULL_REPLAY_BATCH, and they take as
 *                 long as the longest of them. That is the best that batches can do.
 */
#ifndef LULL_REQUEST_LOAD_REPLAY_H
#define LULL_REQUEST_LOAD_REPLAY_H

#include "request/requests.h"

#define LULL_REPLAY_OFF	  0.2
#define LULL_REPLAY_WAIT  0.05
#define LULL_REPLAY_BATCH 4u

/* Latency in one replay. */
struct lull_replayed {
	u64 p50_ns, p99_ns;
	f64 mean_ns;
};

struct lull_load_replay {
	bool is_known;
	u32 n_servers;	/* requests that are served at a time */
	f64 wait_share; /* of the latency: time in which requests wait for their turn */
	struct lull_replayed now, replica, batches;
	struct lull_replayed more; /* requests come twice as often */
};

/* Compute it from requests that were answered; at least one. */
void lull_load_replay(struct lull_load_replay *to, const struct lull_requests *q);

#endif
