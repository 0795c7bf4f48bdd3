#include "report/lanes.h"

#include <stdlib.h>

#include "base/mem.h"

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

void lull_lanes_scan(void *ctx, struct lull_sum *sum)
{
	const struct lull_lanes_rows *rows = ctx;
	const struct lull_table_desc *table = lull_table_find((u16)rows->table);
	const void **cols = lull_alloc(table->n_cols, sizeof(*cols));
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, rows->reader, rows->table, rows->options->from_ns,
			 rows->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "lane");
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *start_ns = cols[lull_table_column(table, "start_ns")];
		const u64 *dur_ns = cols[lull_table_column(table, "dur_ns")];
		const u32 *lane = cols[lull_table_column(table, "lane")];

		for (size_t i = 0; i < n; i++) {
			if (lull_report_covers(rows->options, start_ns[i], dur_ns[i]))
				lull_sum_add(sum, lull_sum_group(sum, lane[i]), dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
	free(cols);
}
