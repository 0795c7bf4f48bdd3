/*
 * span - a stretch of time; and those of the recording and of each thread.
 */
#ifndef LULL_MODEL_SPAN_H
#define LULL_MODEL_SPAN_H

#include "base/types.h"
#include "trace/reader.h"

struct lull_span {
	u64 from_ns;
	u64 to_ns; /* not before from_ns */
};

/* All time there is. */
#define LULL_SPAN_ALL ((struct lull_span){ 0, UINT64_MAX })

/* From the first to the last event of the recording; empty if there are none. */
struct lull_span lull_span_recording(const struct lull_reader *r);

/* From the first moment to the last at which a thread existed, as far as the recording knows. */
struct lull_span lull_span_lane(struct lull_reader *r, u32 lane);

/* The end of what begins at start_ns; a damaged duration ends with time itself. */
static inline u64 lull_span_end_ns(u64 start_ns, u64 dur_ns)
{
	return dur_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + dur_ns;
}

/* Whether all of [start_ns, start_ns + dur_ns] lies in the span, edges included. */
static inline bool lull_span_holds(struct lull_span span, u64 start_ns, u64 dur_ns)
{
	return start_ns >= span.from_ns && start_ns <= span.to_ns &&
	       dur_ns <= span.to_ns - start_ns;
}

/* The part of a span inside [from_ns, to_ns]; empty if there is none. */
struct lull_span lull_span_cut(struct lull_span span, u64 from_ns, u64 to_ns);

#endif
