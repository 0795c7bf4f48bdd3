/*
 * longest_call - the C library call that each request was in longest, on threads that worked for
 * it. What a request waits for often has no better name: a sleep, a lock, a file, another service.
 */
#include "request/requests_int.h"

void lull_request_take_call(struct lull_request_reader *q, u32 lane, struct lull_span call,
			    u32 name)
{
	struct lull_one_request *all = q->to->all.at;
	const struct lull_request_slice *s;
	size_t n;

	s = lull_request_slices_in(q, lane, call.from_ns, call.to_ns, &n);
	for (size_t i = 0; i < n; i++) {
		struct lull_one_request *one;
		struct lull_span both;

		if (s[i].request == LULL_NO_REQUEST)
			continue;
		one = &all[s[i].request];
		both = lull_span_cut(call, s[i].from_ns, s[i].to_ns);
		both = lull_span_cut(both, one->start_ns, one->end_ns);
		if (both.to_ns > both.from_ns && both.to_ns - both.from_ns > one->call_ns) {
			one->call_ns = both.to_ns - both.from_ns;
			one->call = name;
		}
	}
}
