/*
 * pulse - live values of the program during a recording: steps, launches, bytes, idle time.
 *
 * What it gives:  counters for lull profile --metrics-port, and slow steps for --trigger.
 * How:            every row is seen once, on its way to the file; only sums and a short history of
 *                 each thread are kept.
 * Idle time:      an estimate. A device is idle between the end of all work seen so far and the
 *                 start of the next. Idle time after the start of the call that launched the next
 *                 work is `launch`, or `queue` if the call returned before the device became idle.
 *                 Idle time before the call belongs to the calling thread: `cuda-call`, `os-call`
 *                 or `gil` while it was in one, else `host-code`. Threads that deliver device
 *                 records are read one after the other, so work is sorted once all have been read;
 *                 records that arrive later make idle time look slightly too long. `lull why` on a
 *                 report is exact.
 * Memory:         fixed, about 3 MiB, and 1 MiB for requests.
 * Threads:        the recorder's thread only.
 */
#ifndef LULL_RECORD_LIVE_PULSE_H
#define LULL_RECORD_LIVE_PULSE_H

#include "base/types.h"
#include "base/vec.h"
#include "record/live/live_requests.h"
#include "trace/tables.h"

struct lull_recording;

/* Upper bounds of the histogram of steps, in ns; the last bucket has none. */
#define LULL_PULSE_BUCKETS                                                                      \
	{                                                                                       \
		1000000ull, 2000000ull, 5000000ull, 10000000ull, 20000000ull, 50000000ull,      \
			100000000ull, 200000000ull, 500000000ull, 1000000000ull, 2000000000ull, \
			5000000000ull, 10000000000ull, 20000000000ull, 50000000000ull,          \
			100000000000ull                                                         \
	}
#define LULL_PULSE_N_BUCKETS 16

/* Where idle time went; the names are in lull_pulse_causes. */
enum lull_pulse_cause {
	LULL_PULSE_LAUNCH,
	LULL_PULSE_QUEUE,
	LULL_PULSE_CUDA_CALL,
	LULL_PULSE_OS_CALL,
	LULL_PULSE_GIL,
	LULL_PULSE_HOST_CODE,
	LULL_PULSE_N_CAUSES,
};
extern const char *const lull_pulse_causes[LULL_PULSE_N_CAUSES];

/* One device of one process. */
struct lull_pulse_device {
	u32 device; /* row of the table `device` */
	u32 pid, number;
	u64 busy_until_ns;
	u64 busy_ns;
	u64 idle_ns[LULL_PULSE_N_CAUSES];
	/* The same a while ago, for shares of the recent past. */
	u64 past_busy_ns;
	u64 past_idle_ns[LULL_PULSE_N_CAUSES];
};

#define LULL_PULSE_MAX_DEVICES 16
#define LULL_PULSE_MAX_LOOPS   64
#define LULL_PULSE_HISTORY     32 /* steps that a new one is compared with */

/* The steps of one thread. */
struct lull_pulse_loop {
	u32 lane;
	u64 n;
	u64 last_ns[LULL_PULSE_HISTORY];
};

/* A step that was too long. */
struct lull_slow_step {
	u64 number; /* of the step; 0 if the program numbers none */
	u64 start_ns, dur_ns;
	u64 usual_ns; /* median of those before it, 0 if there are too few */
};

struct lull_pulse {
	/*
	 * When a step is slow: longer than factor x usual, or than limit_ns; 0 = that is not asked.
	 */
	f64 slow_factor;
	u64 slow_ns;
	struct lull_slow_step slow; /* the latest; dur_ns 0 if there was none since it was reset */

	u64 n_steps, step_ns, last_step_ns;
	u64 step_counts[LULL_PULSE_N_BUCKETS + 1];
	u64 n_kernels, n_launches, n_copies, n_memsets;
	u64 copied_bytes[16]; /* by memcpy.copy_kind; others at 0 */
	struct lull_pulse_device devices[LULL_PULSE_MAX_DEVICES];
	u32 n_devices;
	struct lull_pulse_loop loops[LULL_PULSE_MAX_LOOPS];
	u32 n_loops;
	bool has_steps;		     /* the program marks steps: ranges do not count */
	struct lull_vec step_labels; /* u8 by row of `label`: 1 if it names a step */
	struct lull_vec end_labels;  /* u8 by row of `label`: enum lull_live_end */
	struct lull_live_requests requests;
	struct lull_pulse_calls *calls;
	struct lull_pulse_waits *waits;
	struct lull_vec works; /* what devices did and is not in their sums yet */
};

/* Nothing seen yet. */
void lull_pulse_init(struct lull_pulse *p);

/* Free it. */
void lull_pulse_release(struct lull_pulse *p);

/* A row goes to the report that `r` writes. */
void lull_pulse_add(struct lull_pulse *p, struct lull_recording *r, enum lull_table table,
		    const void *row);

/* All threads have been read: busy and idle times are those of all rows so far. */
void lull_pulse_settle(struct lull_pulse *p);

/* The label with this row id has this name. */
void lull_pulse_label(struct lull_pulse *p, u32 label, const char *name);

/* From now on shares are those of the time that follows. */
void lull_pulse_turn(struct lull_pulse *p);

/* A report starts: its rows have new ids; the counters continue. */
void lull_pulse_new_report(struct lull_pulse *p);

#endif
