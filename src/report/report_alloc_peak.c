/*
 * alloc_peak: what lived when a framework had most memory in use.
 */
#include <stdlib.h>

#include "base/sort.h"
#include "report/alloc.h"

static const struct lull_out_column columns[] = {
	{ .name = "Peak", .kind = LULL_OUT_BYTES, .doc = "most that was in use at the same time" },
	{ .name = "Peak At",
	  .kind = LULL_OUT_NS,
	  .is_moment = true,
	  .doc = "when that was first reached",
	  .is_spare = true },
	{ .name = "Reserved",
	  .kind = LULL_OUT_BYTES,
	  .doc = "reserved by the allocator at that moment; empty if it reserves no memory",
	  .is_spare = true },
	{ .name = "Unused",
	  .kind = LULL_OUT_PERCENT,
	  .doc = "unused part of this: fragmented, or cached",
	  .is_spare = true },
	{ .name = "Held",
	  .kind = LULL_OUT_BYTES,
	  .doc = "part of the peak that this place had allocated" },
	{ .name = "Share", .kind = LULL_OUT_PERCENT, .doc = "the same in percent of the peak" },
	{ .name = "Blocks", .kind = LULL_OUT_INT, .doc = "number of blocks", .is_spare = true },
	{ .name = "Age",
	  .kind = LULL_OUT_NS,
	  .doc = "age of the oldest block at the peak",
	  .is_spare = true },
	LULL_ALLOC_POOL_COLUMNS,
	LULL_ALLOC_PLACE_COLUMNS,
};

struct peak {
	const struct lull_allocs *allocs;
	struct lull_alloc_groups groups;
};

/* The groups whose blocks lived then; lived_ns is the age of the oldest. */
static void collect(struct peak *p, u32 pool_ix)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&p->allocs->pools, pool_ix);
	const struct lull_alloc_block *block = p->allocs->blocks.at;

	for (size_t i = 0; i < p->allocs->blocks.n; i++, block++) {
		struct lull_alloc_group *group;
		u64 age_ns = pool->peak_ns - block->begin_ns;

		if (block->pool != pool_ix || block->begin_ns > pool->peak_ns ||
		    block->end_ns <= pool->peak_ns)
			continue;
		group = lull_alloc_group_of(&p->groups, lull_alloc_place(p->allocs, block));
		group->n_blocks++;
		group->peak_bytes += block->size_bytes;
		group->lived_ns = age_ns > group->lived_ns ? age_ns : group->lived_ns;
	}
}

static int by_size(const void *a, const void *b)
{
	const struct lull_alloc_group *x = a, *y = b;

	if (x->peak_bytes != y->peak_bytes)
		return x->peak_bytes > y->peak_bytes ? -1 : 1;
	return (x->n_blocks < y->n_blocks) - (x->n_blocks > y->n_blocks);
}

static void put_pool(struct lull_out *out, const struct lull_alloc_pool *pool)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)pool->peak_bytes);
	lull_out_i64(out, (i64)pool->peak_ns);
	if (pool->peak_reserved_bytes) {
		lull_out_i64(out, (i64)pool->peak_reserved_bytes);
		lull_out_f64(out,
			     lull_alloc_unused_pct(pool->peak_bytes, pool->peak_reserved_bytes));
	} else {
		lull_out_skip(out);
		lull_out_skip(out);
	}
}

static void put(const struct peak *p, struct lull_out *out, u32 pool_ix,
		const struct lull_alloc_group *g)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&p->allocs->pools, pool_ix);

	put_pool(out, pool);
	lull_out_i64(out, (i64)g->peak_bytes);
	lull_out_f64(out, 100 * (f64)g->peak_bytes / (f64)pool->peak_bytes);
	lull_out_i64(out, (i64)g->n_blocks);
	lull_out_i64(out, (i64)g->lived_ns);
	lull_alloc_put_pool(out, p->allocs, pool_ix);
	lull_alloc_put_place(out, p->allocs, &g->place);
}

/* What the framework had in use already when the recording began, as far as it is still there. */
static void put_before(const struct peak *p, struct lull_out *out, u32 pool_ix, u64 seen_bytes)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&p->allocs->pools, pool_ix);

	if (seen_bytes >= pool->peak_bytes)
		return;
	put_pool(out, pool);
	lull_out_i64(out, (i64)(pool->peak_bytes - seen_bytes));
	lull_out_f64(out, 100 * (f64)(pool->peak_bytes - seen_bytes) / (f64)pool->peak_bytes);
	lull_out_skip(out);
	lull_out_skip(out);
	lull_alloc_put_pool(out, p->allocs, pool_ix);
	lull_out_text(out, "[before the recording]");
}

static void put_all(struct peak *p, struct lull_out *out, u32 pool_ix, size_t n_rows)
{
	u64 seen_bytes = 0;

	lull_alloc_groups_init(&p->groups);
	collect(p, pool_ix);
	if (p->groups.all.n)
		lull_sort(p->groups.all.at, p->groups.all.n, sizeof(struct lull_alloc_group),
			  by_size);
	for (size_t i = 0; i < p->groups.all.n; i++) {
		const struct lull_alloc_group *group = lull_vec_get(&p->groups.all, i);

		seen_bytes += group->peak_bytes;
		if (i < n_rows)
			put(p, out, pool_ix, group);
	}
	put_before(p, out, pool_ix, seen_bytes);
	lull_alloc_groups_release(&p->groups);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct lull_allocs allocs;
	struct peak p = { .allocs = &allocs };
	size_t n_rows;
	u32 *order;

	if (lull_report_arg_rows(options, SIZE_MAX, &n_rows, err))
		return err->code;
	lull_allocs_init(&allocs, r, lull_report_window(options));
	order = lull_allocs_by_peak(&allocs);
	for (size_t i = 0; i < allocs.pools.n; i++)
		put_all(&p, out, order[i], n_rows);
	free(order);
	lull_allocs_release(&allocs);
	return LULL_OK;
}

const struct lull_report lull_report_alloc_peak = {
	.name = "alloc_peak",
	.display = "Allocations at the Peak",
	.summary = "live allocations when a framework used most memory",
	.help = "For each process and memory: the most that a framework had in use, how much its "
		"allocator reserved at that moment, and the live allocations, by the operator "
		"that made them and the line of the program; largest first. rows=N shows N "
		"places of each process and memory.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc),
	.empty = "nothing was in use",
	.page = { .tab = "memory", .label = "at the peak", .is_join = true },
	.run = run,
};
