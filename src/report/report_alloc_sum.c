/*
 * alloc_sum: what a framework allocated, by operator and line.
 */
#include "report/alloc.h"

static const struct lull_out_column columns[] = {
	{ .name = "Allocated", .kind = LULL_OUT_BYTES, .doc = "sum of all allocations" },
	{ .name = "Allocations", .kind = LULL_OUT_INT, .doc = "how many" },
	{ .name = "Largest", .kind = LULL_OUT_BYTES, .doc = "of them", .is_spare = true },
	{ .name = "At Peak",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part that was in use at the peak of this memory" },
	{ .name = "At End",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part that was not released",
	  .is_spare = true },
	{ .name = "Lived",
	  .kind = LULL_OUT_NS,
	  .doc = "mean from allocation to release, of those that were released",
	  .is_spare = true },
	LULL_ALLOC_POOL_COLUMNS,
	LULL_ALLOC_PLACE_COLUMNS,
};

static void put(struct lull_out *out, const struct lull_allocs *a, const struct lull_alloc_group *g)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)g->size_bytes);
	lull_out_i64(out, (i64)g->n_blocks);
	lull_out_i64(out, (i64)g->largest_bytes);
	lull_out_i64(out, (i64)g->peak_bytes);
	lull_out_i64(out, (i64)g->end_bytes);
	if (g->n_released)
		lull_out_i64(out, (i64)(g->lived_ns / g->n_released));
	else
		lull_out_skip(out);
	lull_alloc_put_pool(out, a, g->place.pool);
	lull_alloc_put_place(out, a, &g->place);
}

static void collect(struct lull_alloc_groups *groups, const struct lull_allocs *a,
		    const struct lull_report_options *options)
{
	bool is_by_op = lull_report_has_arg(options, "op");
	bool is_by_line = lull_report_has_arg(options, "line");
	const struct lull_alloc_block *block = a->blocks.at;

	for (size_t i = 0; i < a->blocks.n; i++, block++) {
		struct lull_alloc_place place = *lull_alloc_place(a, block);

		if (!lull_report_covers(options, block->begin_ns, 0))
			continue;
		if (is_by_op && !is_by_line)
			place.frame = 0;
		if (is_by_line && !is_by_op)
			place.op = place.function = 0;
		lull_alloc_group_add(lull_alloc_group_of(groups, &place), a, block);
	}
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	return lull_alloc_report(r, out, options, collect, put, err);
}

const struct lull_report lull_report_alloc_sum = {
	.name = "alloc_sum",
	.display = "Allocations",
	.summary = "what a framework allocated, by operator and line",
	.help = "Memory that the allocator of a framework allocated, by the operator that "
		"requested it and the line of the program that called it; most bytes first. op "
		"has a row for each operator, line one for each line; rows=N shows N rows.",
	.args = "op line rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc),
	.empty = "nothing was allocated",
	.sorted_by = 1,
	.page = { .tab = "memory", .label = "all", .place = 1, .is_join = true },
	.run = run,
};
