/*
 * lanes - what reports by thread share: the cells that name one.
 */
#ifndef LULL_REPORT_LANES_H
#define LULL_REPORT_LANES_H

#include "text/out.h"
#include "report/report.h"
#include "trace/reader.h"

/* The columns that lull_lanes_put() fills. */
#define LULL_LANES_COLUMNS                                                             \
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id", .is_spare = true }, \
		{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread id" },            \
	{                                                                              \
		.name = "Thread", .kind = LULL_OUT_TEXT, .doc = "name of the thread"   \
	}

struct lull_lane_ids {
	u32 pid, tid;
};

/* Process and thread id of a lane; both 0 for lane 0, which is no thread. */
struct lull_lane_ids lull_lanes_ids(struct lull_reader *r, u32 lane);

/* Fill the three cells. */
void lull_lanes_put(struct lull_out *out, struct lull_reader *r, u32 lane);

#endif
