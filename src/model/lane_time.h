/*
 * lane_time - what threads did with their time: each nanosecond counted once.
 *
 * A thread can do several things at once: be in fread() and in the read() inside it, in a condition
 * variable that is part of waiting for Python's interpreter lock, on a CPU inside a call. The first
 * matching value of enum lull_activity gets the nanosecond.
 *
 * Memory:         bounded: the recording is processed in slices of about SLICE_ROWS rows.
 */
#ifndef LULL_MODEL_LANE_TIME_H
#define LULL_MODEL_LANE_TIME_H

#include "base/types.h"
#include "model/span.h"
#include "trace/reader.h"

enum lull_activity {
	LULL_ACTIVITY_RUNNING, /* on a CPU, if scheduling was recorded */
	LULL_ACTIVITY_GIL,     /* waits for Python's interpreter lock */
	LULL_ACTIVITY_LOCK,    /* then as enum lull_wait */
	LULL_ACTIVITY_IO,
	LULL_ACTIVITY_SLEEP,
	LULL_ACTIVITY_OTHER,
	LULL_N_ACTIVITIES,
};

struct lull_lane_time {
	u64 ns[LULL_N_ACTIVITIES];
};

/*
 * Add up the time of every lane inside `window`; times[lane], so one element more than there are
 * lanes.
 */
void lull_lane_time_add(struct lull_reader *r, struct lull_span window,
			struct lull_lane_time *times);

#endif
