#include "report/lanes.h"

/* The row of a lane, or NULL. */
static const struct lull_lane_row *row_of(struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	return lane && lane <= n ? &lanes[lane - 1] : NULL;
}

struct lull_lane_ids lull_lanes_ids(struct lull_reader *r, u32 lane)
{
	const struct lull_lane_row *row = row_of(r, lane);
	struct lull_lane_ids ids = { 0, 0 };
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);

	if (!row)
		return ids;
	ids.tid = row->tid;
	if (row->process && row->process <= n)
		ids.pid = processes[row->process - 1].pid;
	return ids;
}

void lull_lanes_put(struct lull_out *out, struct lull_reader *r, u32 lane)
{
	const struct lull_lane_row *row = row_of(r, lane);
	struct lull_lane_ids ids = lull_lanes_ids(r, lane);

	lull_out_i64(out, ids.pid);
	lull_out_i64(out, ids.tid);
	lull_out_text(out, row ? lull_reader_string(r, row->name, NULL) : NULL);
}
