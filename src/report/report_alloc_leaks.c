/*
 * alloc_leaks: places that leak memory step after step.
 *
 * A block is leaked if it was allocated in a step, was not released before the last step ended, and
 * a whole step came after. A place that does so in one step only keeps something, as optimizers
 * keep their state; a place that does so in two or more steps is listed.
 */
#include "model/alloc_steps.h"
#include "report/alloc.h"

/* In how many steps a place leaves something before it is called a leak. */
#define MIN_STEPS 2

static const struct lull_out_column columns[] = {
	{ .name = "Left",
	  .kind = LULL_OUT_BYTES,
	  .doc = "allocated and not released before the last step ended" },
	{ .name = "Blocks", .kind = LULL_OUT_INT, .doc = "number of blocks" },
	{ .name = "Steps", .kind = LULL_OUT_INT, .doc = "steps that leaked memory" },
	{ .name = "Of Steps",
	  .kind = LULL_OUT_INT,
	  .doc = "number of steps that another step followed",
	  .is_spare = true },
	{ .name = "Per Step", .kind = LULL_OUT_BYTES, .doc = "leaked per such step" },
	LULL_ALLOC_POOL_COLUMNS,
	LULL_ALLOC_PLACE_COLUMNS,
};

struct leaks {
	struct lull_allocs allocs;
	struct lull_alloc_steps steps;
	struct lull_alloc_groups groups;
	struct lull_map seen; /* place and step */
};

static void collect(struct leaks *l)
{
	const struct lull_alloc_block *block = l->allocs.blocks.at;

	for (size_t i = 0; i < l->allocs.blocks.n; i++, block++) {
		u32 step = lull_alloc_left_in(&l->steps, block);
		struct lull_alloc_group *group;
		bool is_new;

		if (!step)
			continue;
		group = lull_alloc_group_of(&l->groups, lull_alloc_place(&l->allocs, block));
		lull_map_add(&l->seen, (u64)block->place << 32 | step, &is_new);
		group->n_steps += is_new;
		group->n_blocks++;
		group->size_bytes += block->size_bytes;
	}
}

/* Steps of the pool that another one followed. */
static u64 n_followed(const struct leaks *l, u32 pool)
{
	const struct lull_alloc_step *steps = l->steps.all.at;
	u64 n = 0;

	for (size_t i = 0; i < l->steps.all.n; i++)
		n += steps[i].pool == pool;
	return n ? n - 1 : 0;
}

static void put(const struct leaks *l, struct lull_out *out, const struct lull_alloc_group *g)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)g->size_bytes);
	lull_out_i64(out, (i64)g->n_blocks);
	lull_out_i64(out, (i64)g->n_steps);
	lull_out_i64(out, (i64)n_followed(l, g->place.pool));
	lull_out_i64(out, (i64)(g->size_bytes / g->n_steps));
	lull_alloc_put_pool(out, &l->allocs, g->place.pool);
	lull_alloc_put_place(out, &l->allocs, &g->place);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct leaks l;

	(void)err;
	lull_allocs_init(&l.allocs, r, lull_report_window(options));
	lull_alloc_steps_init(&l.steps, &l.allocs);
	lull_alloc_groups_init(&l.groups);
	lull_map_init(&l.seen);
	collect(&l);
	lull_alloc_groups_sort(&l.groups);
	for (size_t i = 0; i < l.groups.all.n; i++) {
		const struct lull_alloc_group *group = lull_vec_get(&l.groups.all, i);

		if (group->n_steps >= MIN_STEPS)
			put(&l, out, group);
	}
	lull_map_release(&l.seen);
	lull_alloc_groups_release(&l.groups);
	lull_alloc_steps_release(&l.steps);
	lull_allocs_release(&l.allocs);
	return LULL_OK;
}

const struct lull_report lull_report_alloc_leaks = {
	.name = "alloc_leaks",
	.display = "Memory Left Behind",
	.summary = "places that leak memory step after step",
	.help = "Places that allocated memory in two or more steps and did not release it before "
		"the last step ended, although at least one step came after; most bytes first. "
		"Memory that a program keeps on purpose, such as a list of results, is included. "
		"Steps are those of step_sum.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(alloc),
	.needs_any = LULL_NEED_STEPS,
	.empty = "no place leaked memory in two or more steps",
	.sorted_by = 1,
	.page = { .tab = "memory", .label = "left behind", .is_join = true },
	.run = run,
};
