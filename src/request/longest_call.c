/*
 * longest_call - the C library call that each request was in longest, on threads that worked for
 * it. What a request waits for often has no better name: a sleep, a lock, a file, another service.
 */
#include "request/requests_int.h"

static void take_call(struct lull_request_reader *q, u32 lane, struct lull_span call, u32 name)
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

void lull_request_longest_calls(struct lull_request_reader *q)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_oscall, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);

			if (cols.lane[i])
				take_call(q, cols.lane[i],
					  (struct lull_span){ cols.start_ns[i], end_ns },
					  cols.name[i]);
		}
	}
	lull_cursor_release(&c);
}
