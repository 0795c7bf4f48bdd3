/*
 * counters - counters of selected launches (lull kernel).
 *
 * How:      callbacks of the driver's launches. A launch that the request (wire/kwish.h) selects is
 *           measured between its two callbacks by kprof.h. Launches of other threads wait until it
 *           is done, since their kernels would be counted, too. For other launches only the name is
 *           checked.
 * Refused:  if counters cannot be read, the launch is still reported, and CUPTI's kernel records
 *           are enabled to get its duration.
 * Stop:     when nothing is left to measure, the hardware is released and launches run unchanged.
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
