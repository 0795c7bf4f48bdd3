#include "model/span.h"

struct lull_span lull_span_recording(const struct lull_reader *r)
{
	struct lull_span span = { UINT64_MAX, 0 };

	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct lull_table_stats stats = lull_reader_stats(r, t->id);

		if (t->kind != LULL_KIND_FACT || !stats.n_rows)
			continue;
		if (stats.first_ns < span.from_ns)
			span.from_ns = stats.first_ns;
		if (stats.last_ns > span.to_ns)
			span.to_ns = stats.last_ns;
	}
	return span.from_ns > span.to_ns ? (struct lull_span){ 0, 0 } : span;
}

/* When the process of a lane ended, 0 if unknown. */
static u64 process_end(struct lull_reader *r, u32 process)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);

	return process && process <= n ? processes[process - 1].end_ns : 0;
}

struct lull_span lull_span_lane(struct lull_reader *r, u32 lane)
{
	struct lull_span span = lull_span_recording(r);
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	u64 end_ns;

	if (!lane || lane > n)
		return span;
	end_ns = lanes[lane - 1].end_ns;
	if (!end_ns)
		end_ns = process_end(r, lanes[lane - 1].process);
	return lull_span_cut(span, lanes[lane - 1].start_ns, end_ns ? end_ns : span.to_ns);
}

struct lull_span lull_span_cut(struct lull_span span, u64 from_ns, u64 to_ns)
{
	if (span.from_ns < from_ns)
		span.from_ns = from_ns;
	if (span.to_ns > to_ns)
		span.to_ns = to_ns;
	if (span.to_ns < span.from_ns)
		span.to_ns = span.from_ns;
	return span;
}
