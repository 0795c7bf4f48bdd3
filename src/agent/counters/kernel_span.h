/*
 * kernel_span - counters of a part of the program as one unit of work (--replay range).
 *
 * What a span is:  a range that --nvtx-include names, or else the part from cudaProfilerStart() to
 *                  cudaProfilerStop(). Its kernels run as they do without lull, several at a time,
 *                  and none is replayed: the program runs once for each pass.
 * Edges:           the device is synchronised at both ends, so that exactly the work of the span is
 *                  counted.
 * Threads:         one span at a time in a process; a second one that starts before the first ends
 *                  is not measured. Launches of all threads count.
 */
#ifndef LULL_AGENT_COUNTERS_KERNEL_SPAN_H
#define LULL_AGENT_COUNTERS_KERNEL_SPAN_H

#include "agent/core/ring.h"

/* True in a session that measures spans. */
static inline bool lull_kernel_has_spans(void)
{
	return lull_agent.control->kernels.replay == LULL_REPLAY_RANGE;
}

/* A span of this name begins on this thread; NULL for one between calls of the profiler API. */
void lull_kernel_span_begin(struct lull_thread *t, const char *name);

/* It ends, if it is the one that is measured. */
void lull_kernel_span_end(struct lull_thread *t);

/* A kernel or a graph is launched. */
void lull_kernel_span_launch(void *context);

#endif
