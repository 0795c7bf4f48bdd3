#include "model/thread/stays.h"

#include "model/runsort.h"
#include "model/span.h"

bool lull_stays_collect(struct lull_vec *stays, struct lull_reader *r, u64 from_ns, u64 to_ns,
			const u8 *counts)
{
	struct lull_sched_cols cols;
	struct lull_cursor c;
	bool has_any = false;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_sched, from_ns, to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		has_any = true;
		for (size_t i = 0; i < n; i++) {
			u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);

			if (counts[cols.lane[i]] && cols.start_ns[i] < to_ns && end_ns > from_ns)
				*(struct lull_stay *)lull_vec_push(stays) =
					(struct lull_stay){ .begin_ns = cols.start_ns[i],
							    .end_ns = end_ns,
							    .lane = cols.lane[i],
							    .end_reason = cols.end_reason[i] };
		}
	}
	lull_cursor_release(&c);
	if (stays->n)
		lull_runsort(stays->at, stays->n, sizeof(struct lull_stay));
	return has_any;
}
