/*
 * kprof - counters of one launch at a time, from CUPTI's range profiler.
 *
 *	struct lull_kprof *p = lull_kprof_open(context, device_ix, wish);
 *	if (!p->refused.error && lull_kprof_start(p)) {
 *		the program launches one kernel; CUPTI saves the memory it writes, runs it once for
 *		each pass, and restores the memory between passes
 *		lull_kprof_stop(p);		p->values[i] is p->names[i]
 *	}
 *
 * Request:       a text of lines KEY TAB NAME [TAB NAME...]. For each line, the first name that the
 *                chip supports is measured; a line without one is skipped.
 * Ownership:     separate mappings; nothing is freed before the process ends, since CUPTI may keep
 *                addresses.
 * Threads:       one at a time; the caller ensures that.
 * Cost:          opening takes 0.2 s; a launch takes the time of its passes and of saving and
 *                restoring memory.
 */
#ifndef LULL_AGENT_COUNTERS_KPROF_H
#define LULL_AGENT_COUNTERS_KPROF_H

#include "agent/counters/refusal.h"
#include "wire/cuprof.h"

#define LULL_KPROF_MAX_METRICS 1024u

/* How many launches a range had in the runs of the program so far. */
struct lull_kprof_runs {
	u32 most, least;
};

struct lull_kprof {
	void *context;
	u32 device_ix;
	struct lull_refusal refused; /* .error is 0 when it is ready */
	char chip[32];
	u32 n_passes;
	u32 n; /* metrics that are measured */
	u32 n_left_out;
	const char *keys[LULL_KPROF_MAX_METRICS];
	const char *names[LULL_KPROF_MAX_METRICS];
	f64 values[LULL_KPROF_MAX_METRICS];
	/* CUPTI's. */
	void *host, *object;
	u8 *availability, *config, *data;
	size_t config_bytes, data_bytes;
	bool is_enabled;
	/*
	 * Where a program that runs once for each pass keeps what it has so far, "" = CUPTI runs
	 * the kernel again itself; and which pass this is.
	 */
	char data_path[256];
	u32 pass_ix;
	/*
	 * A range of the program in place of one launch, NULL = none: its name, how many launches
	 * it had at most and at least in all runs. The caller sets n_launches before the stop.
	 */
	const char *range;
	u32 n_launches, n_launches_least;
	struct lull_kprof_runs before;
	bool needs_more; /* the counters are complete after another run only */
};

/*
 * Get ready to measure kernels of a context. NULL only if there is no memory; else ->refused says
 * whether it works. `wish` stays with it.
 */
struct lull_kprof *lull_kprof_open(void *context, u32 device_ix, char *wish);

/* Before the launch; false with ->refused if CUPTI refuses. */
bool lull_kprof_start(struct lull_kprof *p);

/* After it: read the counters. False with ->refused if there are none. */
bool lull_kprof_stop(struct lull_kprof *p);

/* Release the hardware; kernels then run at full speed. Opens again on start. */
void lull_kprof_pause(struct lull_kprof *p);

#endif
