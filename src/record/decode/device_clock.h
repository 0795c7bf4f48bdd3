/*
 * device_clock - how well the device's timestamps fit the host's, measured on the program's own
 * work.
 *
 * CUPTI converts device timestamps to our counter with its own clock comparison, which can be off.
 * Two things must be true: work starts after its call started, and has ended when a wait for it
 * returns. The shortest distance of the first kind says how late the device's timestamps can be at
 * most, the shortest of the second kind how early. A negative distance is an observed error. Work
 * that seems to start before its call is moved to after it, and counted.
 */
#ifndef LULL_RECORD_DECODE_DEVICE_CLOCK_H
#define LULL_RECORD_DECODE_DEVICE_CLOCK_H

#include "record/recording.h"
#include "trace/tables.h"

/* A wait of the host that has returned. */
struct lull_device_wait {
	u32 correlation;
	u32 lane; /* of the stream, 0 for all streams */
	u64 end_ns;
};

/* The rows that are work of a device; each begins with start_ns. */
union lull_work_row {
	u64 start_ns;
	struct lull_kernel_row kernel;
	struct lull_memcpy_row memcpy;
	struct lull_memset_row memset;
	struct lull_graph_row graph;
};

struct lull_device_work {
	enum lull_table table;
	struct lull_process *process;
	u32 correlation;
	u32 lane;
	u64 dur_ns;
	union lull_work_row row;
};

/* A call with this number began. */
void lull_device_clock_call(struct lull_process *p, u32 correlation, u64 start_ns);

/*
 * Add the row of work. It is held back if the call is not known yet: threads are read one after the
 * other, and the one that tells about the work may come first.
 */
void lull_device_clock_add(struct lull_recording *r, const struct lull_device_work *work);

/* Add what was held back; all threads have been read. */
void lull_device_clock_release(struct lull_recording *r);

/* The host has waited for the device; the work it waited for may be told later. */
void lull_device_clock_wait(struct lull_process *p, const struct lull_device_wait *wait);

/* Note what was measured in the report: cuda.clock_*. */
void lull_device_clock_note(struct lull_recording *r);

#endif
