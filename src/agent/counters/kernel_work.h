/*
 * kernel_work - a launch or a range whose counters are read, and the events about it.
 *
 *	lull_kwork_begin(&w, ...);	counters are on, or w.status says why not
 *	the program launches
 *	if (lull_kwork_end(&w))
 *		lull_kwork_tell(t, &w, cost);
 *
 * Refused:  the work is still reported; CUPTI's kernel records are enabled to get its duration.
 * Threads:  one at a time; the caller ensures that.
 */
#ifndef LULL_AGENT_COUNTERS_KERNEL_WORK_H
#define LULL_AGENT_COUNTERS_KERNEL_WORK_H

#include "agent/counters/kernel_launch.h"
#include "agent/counters/kprof.h"

struct lull_kwork {
	struct lull_launch launch; /* a range has its name there, and no shape */
	u64 ordinal;
	u64 since;
	u32 status; /* LULL_PROFILED_* */
	u32 n_launches;
	bool is_range;
	bool is_measuring; /* its counters are read */
	struct lull_kprof *prof;
	const char *trouble; /* what went wrong beside CUPTI's counters, NULL = nothing */
};

/* Switch the counters on; false if they are refused, and the work falls back to its duration. */
bool lull_kwork_begin(struct lull_kwork *w);

/* Read them; false if another run of the program is needed before there is anything to tell. */
bool lull_kwork_end(struct lull_kwork *w);

/* Write the work and its counters into the report. */
void lull_kwork_tell(struct lull_thread *t, struct lull_kwork *w, u64 cost_ticks);

/* It has no counters; durations then come with CUPTI's records of kernels. */
void lull_kwork_fall_back(struct lull_kwork *w, u32 status);

/* Have CUPTI's records of kernels. */
void lull_kwork_want_records(void);

/* Let the recorder know what is measured: it ends a program that never gets done with it. */
void lull_kwork_tell_busy(const char *name);
void lull_kwork_tell_idle(void);

/* Give the hardware back. */
void lull_kwork_pause(void);

#endif
