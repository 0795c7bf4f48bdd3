/*
 * live_requests - requests of a server while it is recorded: how many, how long, how fast tokens
 * come.
 *
 * What it gives:  histograms and counters for lull profile --metrics-port.
 * Order:          marks of one request may come from several threads, which are read one after the
 *                 other; a request counts when both its arrival and its end have been seen.
 * Memory:         fixed, 1 MiB. Of more than 16,384 open requests some are not counted.
 * Threads:        the recorder's thread only.
 */
#ifndef LULL_RECORD_LIVE_LIVE_REQUESTS_H
#define LULL_RECORD_LIVE_LIVE_REQUESTS_H

#include "base/str.h"
#include "base/types.h"
#include "wire/request_mark.h"

/* Times, counted by the bounds of pulse.h. */
struct lull_live_times {
	u64 counts[17]; /* LULL_PULSE_N_BUCKETS and one without a bound */
	u64 n, sum_ns;
};

enum lull_live_end {
	LULL_LIVE_ANSWERED,
	LULL_LIVE_HUNG_UP,
	LULL_LIVE_FAILED,
	LULL_N_LIVE_ENDS,
};

struct lull_live_slot;

struct lull_live_requests {
	struct lull_live_times latency, first_token, between; /* of those answered */
	u64 n_ended[LULL_N_LIVE_ENDS];
	u64 n_arrived, n_closed, n_tokens;
	struct lull_live_slot *slots; /* NULL until the first */
};

/* A mark of a request. */
struct lull_live_mark {
	u64 id, at_ns;
	u32 process;
	enum lull_request_kind kind;
	enum lull_live_end end; /* of LULL_REQUEST_ENDED */
};

/* How a request ended, by the name of its last mark. */
enum lull_live_end lull_live_end_of(const char *name);

/* A mark is written to the report. */
void lull_live_requests_add(struct lull_live_requests *q, const struct lull_live_mark *mark);

/* The rows of the next report have other ids: what is open is forgotten. */
void lull_live_requests_forget(struct lull_live_requests *q);

/* In the format of Prometheus; nothing if no request was seen. */
void lull_live_requests_write(const struct lull_live_requests *q, struct lull_str *to);

/* Free it. */
void lull_live_requests_release(struct lull_live_requests *q);

#endif
