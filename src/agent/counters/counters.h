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

/* Look at ranges: launches have to be inside one, or it is measured as a whole; kernel_range.c. */
void lull_kernel_watch_ranges(void);

#endif
