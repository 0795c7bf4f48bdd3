/*
 * window - how much of a recording `lull why` looks at.
 *
 * A loop repeats itself: what holds for some millions of kernels holds for a hundred millions. A
 * recording that would take more memory than the limit is looked at in one window in its middle, so
 * that time and memory stay the same however long it is. Units, chain and host load that window.
 *
 * Cost:           linear in blocks; nothing is decoded.
 */
#ifndef LULL_MODEL_WINDOW_H
#define LULL_MODEL_WINDOW_H

#include "model/span.h"
#include "trace/reader.h"

/* Memory for the events of the window. Tests change it, and jobs lift it. */
extern u64 lull_window_limit_bytes;

/* The window; LULL_SPAN_ALL if all of it is looked at. */
struct lull_span lull_window_of(const struct lull_reader *r);

/* Whether it is all of the recording. */
static inline bool lull_window_is_all(struct lull_span window)
{
	return !window.from_ns && window.to_ns == UINT64_MAX;
}

/* Whether something lies in the window, if only in part. */
static inline bool lull_window_meets(struct lull_span window, u64 begin_ns, u64 end_ns)
{
	return begin_ns < window.to_ns && end_ns >= window.from_ns;
}

#endif
