/*
 * alloc_trace: each allocation and release of a framework.
 */
#include "report/alloc.h"

static const struct lull_out_column columns[] = {
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "when" },
	{ .name = "Size", .kind = LULL_OUT_BYTES, .doc = "allocated; negative: released" },
	{ .name = "Allocated", .kind = LULL_OUT_BYTES, .doc = "in use afterwards" },
	{ .name = "Reserved",
	  .kind = LULL_OUT_BYTES,
	  .doc = "reserved by the allocator afterwards",
	  .is_spare = true },
	{ .name = "Unused",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "unused part of the reserved memory",
	  .is_spare = true },
	{ .name = "Lives",
	  .kind = LULL_OUT_NS,
	  .doc = "from allocation to release; empty if either is not in the recording",
	  .is_spare = true },
	LULL_ALLOC_POOL_COLUMNS,
	LULL_ALLOC_PLACE_COLUMNS,
};

static void put(struct lull_out *out, const struct lull_allocs *a,
		const struct lull_alloc_moment *m)
{
	const struct lull_alloc_block *block =
		m->block ? lull_vec_get(&a->blocks, m->block - 1) : NULL;

	lull_out_row(out);
	lull_out_i64(out, (i64)m->at_ns);
	lull_out_i64(out, m->size_bytes);
	lull_out_i64(out, (i64)m->allocated_bytes);
	lull_out_i64(out, (i64)m->reserved_bytes);
	lull_out_f64(out, lull_alloc_unused_pct(m->allocated_bytes, m->reserved_bytes));
	if (block && block->end_ns != UINT64_MAX)
		lull_out_i64(out, (i64)(block->end_ns - block->begin_ns));
	else
		lull_out_skip(out);
	lull_alloc_put_pool(out, a, m->pool);
	if (block)
		lull_alloc_put_place(out, a, lull_alloc_place(a, block));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct lull_alloc_moment *m;
	struct lull_allocs allocs;

	(void)err;
	lull_allocs_init(&allocs, r, lull_report_window(options));
	m = allocs.moments.at;
	for (size_t i = 0; i < allocs.moments.n; i++)
		if (lull_report_covers(options, m[i].at_ns, 0))
			put(out, &allocs, &m[i]);
	lull_allocs_release(&allocs);
	return LULL_OK;
}

const struct lull_report lull_report_alloc_trace = {
	.name = "alloc_trace",
	.display = "Allocation Trace",
	.summary = "each allocation and release of a framework",
	.help = "Each allocation and release by the allocator of a framework, by time, with the "
		"memory in use and reserved afterwards, and the operator that requested it.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc),
	.is_long = true,
	.run = run,
};
