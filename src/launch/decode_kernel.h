/*
 * decode_kernel - launches whose counters were read, and their counters.
 *
 * A launch whose counters were refused has no duration when it is told; it is held until CUPTI's
 * record of the kernel brings it, or the report ends.
 */
#ifndef LULL_LAUNCH_DECODE_KERNEL_H
#define LULL_LAUNCH_DECODE_KERNEL_H

#include "launch/recording.h"
#include "trace/tables.h"

/* A launch that waits for its duration. */
struct lull_held_profiled {
	const struct lull_process *process;
	struct lull_profiled_row row;
};

/* A launch of the report, by what later events call it; its id is its index + 1. */
struct lull_profiled_known {
	const struct lull_process *process;
	u64 ordinal;
	u64 start_ns;
};

/* A kernel record of the process came: give its duration to the launch that waits for it. */
void lull_profiled_kernel(struct lull_recording *r, const struct lull_process *p, u32 correlation,
			  u64 dur_ns);

/* The report ends: write what still waits. */
void lull_profiled_finish(struct lull_recording *r);

#endif
