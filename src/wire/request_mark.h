/*
 * request_mark - how requests of servers stand in a report: marks and ranges of their own.
 *
 * A mark says what became of a request: its label's category is the kind below, its payload the id
 * of the request. The label's name is the request's when it arrives ("GET /generate"), and how it
 * ended when it ends ("200", LULL_REQUEST_HUNG_UP, ...). The data of the first is its traceparent.
 * A range is time in which a thread works for a request: its payload is the id, its name the
 * request's. A thread that works for a batch has a range for each request of it.
 */
#ifndef LULL_WIRE_REQUEST_MARK_H
#define LULL_WIRE_REQUEST_MARK_H

/* label.category */
enum lull_request_kind {
	LULL_REQUEST_ARRIVED = 1,
	LULL_REQUEST_ENDED = 2,
	LULL_REQUEST_TOKEN = 3, /* as the program says */
	LULL_REQUEST_PART = 4,	/* a part of an answer that is sent in parts */
	LULL_REQUEST_WORK = 5,	/* of ranges */
};

/* label.api, label.domain and range.payload_type */
#define LULL_REQUEST_API     7
#define LULL_REQUEST_DOMAIN  "request"
#define LULL_REQUEST_PAYLOAD 11u

/* How requests end that were not answered. */
#define LULL_REQUEST_HUNG_UP "hung up"
#define LULL_REQUEST_FAILED  "failed"

#endif
