/*
 * kernel_sample - samples of the program counter of a launch (--section source).
 *
 * The hardware reads counters or takes samples, not both: a session does one of them. Only the
 * thread whose launch is being measured calls these (the holder of counters.c).
 */
#ifndef LULL_AGENT_COUNTERS_KERNEL_SAMPLE_H
#define LULL_AGENT_COUNTERS_KERNEL_SAMPLE_H

#include "agent/counters/kernel_launch.h"

/* Before and after the launch; false if CUPTI refuses. */
bool lull_kernel_sample_begin(const struct lull_launch *launch);
bool lull_kernel_sample_end(struct lull_thread *t, u64 ordinal);

/* What CUPTI said when it refused. */
const char *lull_kernel_sample_trouble(void);

#endif
