/*
 * counters - counters of chosen launches (lull kernel).
 *
 * How:      callbacks of the driver's launches. One that the wish (wire/kwish.h) chooses is
 *           measured between its two callbacks by kprof.h; launches of other threads wait
 *           meanwhile, or their kernels would be counted, too. The others cost a look at their
 *           name.
 * Refused:  where counters cannot be read, the launch is still told, and CUPTI's kernel records are
 *           switched on so that it has its duration.
 * Stop:     when nothing is left to measure, the hardware is given back and launches pass.
 */
#ifndef LULL_AGENT_COUNTERS_COUNTERS_H
#define LULL_AGENT_COUNTERS_COUNTERS_H

#include "agent/core/ring.h"

/* CUPTI's callback in a session of lull kernel. */
void lull_kernel_called(void *user, u32 domain, u32 cbid, const void *data);

/* Turn callbacks for launches on or off. */
void lull_kernel_watch(bool is_on);

/* Labels that kernels have to be in, known by their hash; kernel_range.c. */
void lull_kernel_label(u64 label, const struct lull_text *name, const struct lull_text *domain);
bool lull_kernel_has_label(u64 label);

/* A range of such a label begins and ends on this thread: it may be measured as a whole. */
void lull_kernel_range_begin(struct lull_thread *t, u64 label);
void lull_kernel_range_end(struct lull_thread *t);

/* The same for a range that may end on another thread, by its id. */
void lull_kernel_range_started(struct lull_thread *t, u64 label, u64 range_id);
void lull_kernel_range_ended(struct lull_thread *t, u64 range_id);

/* True in a session whose launches have to be inside a range. */
static inline bool lull_kernel_needs_range(void)
{
	return lull_agent.control->kernels.has_range != 0;
}

#endif
