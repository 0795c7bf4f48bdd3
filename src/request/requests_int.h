/*
 * requests_int - what the files of src/request/ share while they read a report.
 */
#ifndef LULL_REQUEST_REQUESTS_INT_H
#define LULL_REQUEST_REQUESTS_INT_H

#include "model/link.h"
#include "request/requests.h"

#define LULL_NO_REQUEST UINT32_MAX

/* What a thread does; where several hold, the last in this list counts. */
enum lull_thread_state {
	LULL_THREAD_RUNS, /* nothing else is known */
	LULL_THREAD_BLOCKED,
	LULL_THREAD_WAITS,
	LULL_THREAD_IN_LOCK,
	LULL_THREAD_IN_CUDA,
	LULL_THREAD_IN_LONG_LAUNCH, /* a launch that takes so long that it may wait for room */
	LULL_THREAD_IN_ALLOC,
	LULL_THREAD_IN_LOAD, /* of code for the device */
	LULL_THREAD_IN_COPY,
	LULL_THREAD_IN_LONG_COPY, /* waits for its end, or copies on the host */
	LULL_THREAD_IN_SYNC,
	LULL_THREAD_WANTS_LOCK, /* Python's */
	LULL_THREAD_WANTS_CPU,
	LULL_THREAD_COMPILES,
	LULL_THREAD_COLLECTS,
	LULL_N_THREAD_STATES,
};

/* From here to the next one of the lane. */
struct lull_state {
	u64 from_ns;
	u8 state; /* enum lull_thread_state */
};

/* Time in which a thread works for a request. */
struct lull_request_slice {
	u64 from_ns, to_ns;
	u64 id;
	u32 process, lane;
	u32 request; /* index in `all`, or LULL_NO_REQUEST */
};

/* A piece of work of a device. */
struct lull_request_unit {
	u64 from_ns, to_ns;
	u64 reach_ns; /* the latest end of it and all before it */
	u32 process;
	bool is_copy;
};

/* Which request launched which work. */
struct lull_owned {
	u32 request;
	u32 work;
	u64 call_ns; /* start of the call that launched it */
};

struct lull_request_reader {
	struct lull_requests *to;
	struct lull_reader *reader;
	struct lull_span window;
	unsigned wants;
	const struct lull_lane_row *lanes;
	size_t n_lanes;
	struct lull_vec slices;	 /* struct lull_request_slice, by lane, then start */
	size_t *first_slice;	 /* by lane: index in `slices`; one more than there are lanes */
	struct lull_vec *states; /* by lane: struct lull_state; only lanes with slices */
	/* struct lull_request_slice: the collector runs; by start, id: the latest end so far. */
	struct lull_vec collections;
	struct lull_vec work;		      /* struct lull_request_unit, by start */
	struct lull_vec owned;		      /* struct lull_owned, by request, then work */
	u32 *n_served;			      /* by lane: requests that it worked for */
	struct lull_request_samples *samples; /* NULL if places are not wanted */
};

/* The slices of a lane that may overlap [from_ns, to_ns): the first, and how many. */
const struct lull_request_slice *lull_request_slices_in(const struct lull_request_reader *q,
							u32 lane, u64 from_ns, u64 to_ns,
							size_t *n);

/* Where nobody names requests: fills `all` and `slices` from calls on connections. */
void lull_request_from_sockets(struct lull_request_reader *q);

/* Where there are no connections either: the same from the rounds of the loop. */
void lull_request_from_rounds(struct lull_request_reader *q);

/* What threads with slices did: fills `states` and `collections`. */
void lull_request_states(struct lull_request_reader *q);

/* A C library call of a thread: `call` and `call_ns` of each request that it was longest for. */
void lull_request_take_call(struct lull_request_reader *q, u32 lane, struct lull_span call,
			    u32 name);

/* What devices did, and for which request: fills `work` and `owned`. */
void lull_request_work_of(struct lull_request_reader *q);

/* Samples of all threads, to be freed. */
struct lull_request_samples *lull_request_samples_new(struct lull_request_reader *q);
void lull_request_samples_free(struct lull_request_samples *s);

/*
 * Places and turns of a request, from its pieces (struct lull_request_piece, by time) and the lanes
 * of threads that worked for it. Called for one request after the other.
 */
void lull_request_where(struct lull_request_reader *q, u32 request, const u32 *lanes,
			size_t n_lanes, const struct lull_vec *pieces);

/* What the time of each request went to. */
void lull_request_break_down(struct lull_request_reader *q);

#endif
