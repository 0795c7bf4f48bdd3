/*
 * decode_kernel - launches whose counters were read, and their counters.
 *
 * Threads are read one after the other, so events that belong together arrive in any order: a
 * launch without counters gets its duration from CUPTI's record of the kernel, and program counter
 * samples may be taken in the launch of another thread. Both are joined when the report ends.
 */
#ifndef LULL_RECORD_DECODE_DECODE_KERNEL_H
#define LULL_RECORD_DECODE_DECODE_KERNEL_H

#include "record/recording.h"
#include "trace/tables.h"

/* A launch that waits for its duration. */
struct lull_held_profiled {
	const struct lull_process *process;
	struct lull_profiled_row row;
};

/* Samples that wait for their launch. */
struct lull_held_pcsample {
	const struct lull_process *process;
	u64 ordinal;
	struct lull_pcsample_row row;
};

/* A launch of the report, by what samples call it; its id is its index + 1. */
struct lull_profiled_known {
	const struct lull_process *process;
	u64 ordinal;
	u64 start_ns;
	u32 process_id; /* row */
};

/* A kernel that CUPTI told of. */
struct lull_kernel_known {
	const struct lull_process *process;
	u32 correlation;
	u64 dur_ns;
};

/* Part of lull_recording_init(), ..._release() and the end of a report. */
void lull_profiled_init(struct lull_recording *r);
void lull_profiled_release(struct lull_recording *r);
void lull_profiled_clear(struct lull_recording *r);

/* A kernel record of the process came; it may be of a launch that has no counters. */
void lull_profiled_kernel(struct lull_recording *r, const struct lull_process *p, u32 correlation,
			  u64 dur_ns);

/* The report ends: write what waits. */
void lull_profiled_finish(struct lull_recording *r);

#endif
