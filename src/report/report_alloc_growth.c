/*
 * alloc_growth: memory of a framework, step by step.
 */
#include "model/alloc_steps.h"
#include "report/alloc.h"

static const struct lull_out_column columns[] = {
	{ .name = "Step",
	  .kind = LULL_OUT_ID,
	  .doc = "number the program gave it, or its place from 0" },
	{ .name = "At Begin", .kind = LULL_OUT_BYTES, .doc = "in use at its start" },
	{ .name = "Peak", .kind = LULL_OUT_BYTES, .doc = "peak of the memory in use in it" },
	{ .name = "At End", .kind = LULL_OUT_BYTES, .doc = "in use at its end" },
	{ .name = "Growth", .kind = LULL_OUT_BYTES, .doc = "from its start to its end" },
	{ .name = "Left",
	  .kind = LULL_OUT_BYTES,
	  .doc = "allocated in it and not released before the last step ended, though at least one "
		 "step "
		 "came after" },
	{ .name = "Reserved",
	  .kind = LULL_OUT_BYTES,
	  .doc = "reserved by the allocator at its end",
	  .is_spare = true },
	{ .name = "Unused",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "part of the reserved memory that was unused at its peak",
	  .is_spare = true },
	{ .name = "Allocations", .kind = LULL_OUT_INT, .doc = "how many", .is_spare = true },
	LULL_ALLOC_POOL_COLUMNS,
};

static void put(struct lull_out *out, const struct lull_allocs *a, const struct lull_alloc_step *s)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)s->number);
	lull_out_i64(out, (i64)s->begin_bytes);
	lull_out_i64(out, (i64)s->peak_bytes);
	lull_out_i64(out, (i64)s->end_bytes);
	lull_out_i64(out, (i64)(s->end_bytes - s->begin_bytes));
	lull_out_i64(out, (i64)s->left_bytes);
	lull_out_i64(out, (i64)s->reserved_bytes);
	lull_out_f64(out, lull_alloc_unused_pct(s->peak_bytes, s->peak_reserved_bytes));
	lull_out_i64(out, (i64)s->n_allocations);
	lull_alloc_put_pool(out, a, s->pool);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_alloc_steps steps;
	struct lull_allocs allocs;

	(void)err;
	lull_allocs_init(&allocs, r, lull_report_window(options));
	lull_alloc_steps_init(&steps, &allocs);
	for (size_t i = 0; i < steps.all.n; i++)
		put(out, &allocs, lull_vec_get(&steps.all, i));
	lull_alloc_steps_release(&steps);
	lull_allocs_release(&allocs);
	return LULL_OK;
}

const struct lull_report lull_report_alloc_growth = {
	.name = "alloc_growth",
	.display = "Memory by Step",
	.summary = "memory of a framework, step by step",
	.help = "Memory a framework had in use at the start and end of each step, its peak, and "
		"how much its allocator reserved; by memory, then by time. Growth that never "
		"stops is a leak: alloc_leaks shows where. Steps are those of step_sum.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc),
	.needs_any = LULL_NEED_STEPS,
	.empty = "no process has both steps and allocations",
	.page = { .tab = "memory", .label = "by step", .is_join = true },
	.run = run,
};
