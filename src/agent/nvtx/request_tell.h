/*
 * request_tell - the requests of servers, as lull.h and the package in python/ tell of them.
 *
 * What it writes: marks and ranges as wire/request_mark.h says; nothing while nothing is recorded.
 * Threads:        any; the state is the thread's own (thread_state.h).
 */
#ifndef LULL_AGENT_NVTX_REQUEST_TELL_H
#define LULL_AGENT_NVTX_REQUEST_TELL_H

#include "agent/core/ring.h"
#include "wire/request_mark.h"

/* A request; the texts are borrowed. */
struct lull_request {
	u64 id;
	struct lull_text name;
	struct lull_text trace; /* its traceparent, empty if it has none */
};

/* True if requests are to be recorded. */
bool lull_request_is_on(void);

/* A request arrived at this time, as lull_time() gives it; 0 for now. */
void lull_request_arrived(const struct lull_request *request, u64 counter);

/* Something became of the request. */
void lull_request_mark(enum lull_request_kind kind, u64 id, const struct lull_text *name);

/* From now on this thread works for these requests only; none: for no request. */
void lull_request_work(const struct lull_text *name, const u64 *ids, u32 n);

#endif
