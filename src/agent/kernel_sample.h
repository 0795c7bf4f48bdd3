/*
 * kernel_sample - samples of the program counter for launches that were measured (--section
 * source).
 *
 * The hardware reads counters or takes samples, not both: what was measured is sampled when the
 * same kernel is launched again. All functions are for the thread that holds (kernel.c).
 */
#ifndef LULL_AGENT_KERNEL_SAMPLE_H
#define LULL_AGENT_KERNEL_SAMPLE_H

#include "agent/kernel_launch.h"

/* The launch was measured: the next one of its kernel is to be sampled for it. */
void lull_kernel_sample_want(const char *symbol, u64 ordinal);

/* Whether any launch waits for its samples; any thread may ask. */
bool lull_kernel_sample_has_wish(void);

/* The launch that waits for samples of this kernel, 0 if none does; it does not wait any more. */
u64 lull_kernel_sample_take(const char *symbol);

/* Before and after the launch; counters have to be paused. False if CUPTI refuses. */
bool lull_kernel_sample_begin(const struct lull_launch *launch);
bool lull_kernel_sample_end(struct lull_thread *t, u64 ordinal);

/* What CUPTI said when it refused. */
const char *lull_kernel_sample_trouble(void);

#endif
