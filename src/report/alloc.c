#include "report/alloc.h"

#include <stdlib.h>

#include "base/sort.h"
#include "report/gpu.h"

void lull_alloc_groups_init(struct lull_alloc_groups *g)
{
	lull_intern_init(&g->keys);
	lull_vec_init(&g->all, sizeof(struct lull_alloc_group));
}

void lull_alloc_groups_release(struct lull_alloc_groups *g)
{
	lull_intern_release(&g->keys);
	lull_vec_release(&g->all);
}

struct lull_alloc_group *lull_alloc_group_of(struct lull_alloc_groups *g,
					     const struct lull_alloc_place *place)
{
	u32 ix = lull_intern_add(&g->keys, place, sizeof(*place));

	if (ix == g->all.n)
		((struct lull_alloc_group *)lull_vec_push(&g->all))->place = *place;
	return lull_vec_get(&g->all, ix);
}

void lull_alloc_group_add(struct lull_alloc_group *group, const struct lull_allocs *a,
			  const struct lull_alloc_block *block)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&a->pools, block->pool);

	group->n_blocks++;
	group->size_bytes += block->size_bytes;
	if (block->size_bytes > group->largest_bytes)
		group->largest_bytes = block->size_bytes;
	if (block->begin_ns <= pool->peak_ns && block->end_ns > pool->peak_ns)
		group->peak_bytes += block->size_bytes;
	if (block->end_ns == UINT64_MAX) {
		group->end_bytes += block->size_bytes;
	} else {
		group->lived_ns += block->end_ns - block->begin_ns;
		group->n_released++;
	}
}

static int by_size(const void *a, const void *b)
{
	const struct lull_alloc_group *x = a, *y = b;

	if (x->size_bytes != y->size_bytes)
		return x->size_bytes > y->size_bytes ? -1 : 1;
	return (x->n_blocks < y->n_blocks) - (x->n_blocks > y->n_blocks);
}

void lull_alloc_groups_sort(struct lull_alloc_groups *g)
{
	if (g->all.n)
		lull_sort(g->all.at, g->all.n, sizeof(struct lull_alloc_group), by_size);
}

int lull_alloc_report(struct lull_reader *r, struct lull_out *out,
		      const struct lull_report_options *options, lull_alloc_collect *collect,
		      lull_alloc_put *put, struct lull_err *err)
{
	struct lull_alloc_groups groups;
	struct lull_allocs allocs;
	size_t n_rows;

	if (lull_report_arg_rows(options, SIZE_MAX, &n_rows, err))
		return err->code;
	lull_allocs_init(&allocs, r, lull_report_window(options));
	lull_alloc_groups_init(&groups);
	collect(&groups, &allocs, options);
	lull_alloc_groups_sort(&groups);
	for (size_t i = 0; i < groups.all.n && i < n_rows; i++)
		put(out, &allocs, lull_vec_get(&groups.all, i));
	lull_alloc_groups_release(&groups);
	lull_allocs_release(&allocs);
	return LULL_OK;
}

void lull_alloc_pool_name(struct lull_str *to, const struct lull_allocs *a, u32 pool_ix)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&a->pools, pool_ix);
	u32 device = lull_alloc_device(a->reader, pool);

	if (pool->device_id == LULL_ALLOC_HOST)
		lull_str_puts(to, "Host");
	else if (device)
		lull_gpu_device_name(to, a->reader, device);
	else
		lull_str_addf(to, "Device %u", pool->device_id);
}

void lull_alloc_put_pool(struct lull_out *out, const struct lull_allocs *a, u32 pool_ix)
{
	const struct lull_alloc_pool *pool = lull_vec_get(&a->pools, pool_ix);
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(a->reader, LULL_TABLE_process, &n);

	lull_out_i64(out, pool->process ? processes[pool->process - 1].pid : 0);
	lull_alloc_pool_name(lull_out_text_begin(out), a, pool_ix);
	lull_out_text_end(out);
}

void lull_alloc_put_place(struct lull_out *out, const struct lull_allocs *a,
			  const struct lull_alloc_place *place)
{
	if (place->op || place->function) {
		lull_alloc_name(lull_out_text_begin(out), a->reader, place);
		lull_out_text_end(out);
	} else {
		lull_out_skip(out);
	}
	if (place->frame) {
		lull_op_stacks_name(lull_out_text_begin(out), a->reader, place->frame);
		lull_out_text_end(out);
	} else {
		lull_out_skip(out);
	}
}

f64 lull_alloc_unused_pct(u64 allocated_bytes, u64 reserved_bytes)
{
	if (allocated_bytes >= reserved_bytes)
		return 0;
	return 100 * (f64)(reserved_bytes - allocated_bytes) / (f64)reserved_bytes;
}
