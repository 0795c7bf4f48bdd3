/*
 * cuda_gpu_kern_gb_sum: time of kernels by name, grid and block.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_COLUMNS("Instances"),
	{ .name = "GridXYZ", .kind = LULL_OUT_TEXT, .doc = "blocks of the grid" },
	{ .name = "BlockXYZ", .kind = LULL_OUT_TEXT, .doc = "threads of a block" },
	{ .name = "Name", .kind = LULL_OUT_TEXT, .doc = "kernel", .is_kernel = true },
};

struct group {
	u32 name;
	u32 grid[3];
	u32 block[3];
};

struct shapes {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_kernels kernels;
	struct lull_intern groups; /* struct group; its number is the key */
	u32 *by_launch;		   /* number of the group + 1, 0 if not met yet */
};

static u32 group_of(struct shapes *s, const struct lull_work *kernel)
{
	const struct lull_launch_row *launch = lull_kernels_launch(&s->kernels, kernel);
	struct group group = {
		.name = lull_kernels_name(&s->kernels, kernel),
		.grid = { launch->grid_x, launch->grid_y, launch->grid_z },
		.block = { launch->block_x, launch->block_y, launch->block_z },
	};

	return lull_intern_add(&s->groups, &group, sizeof(group));
}

/* The name of a kernel depends on its launch alone, unless ranges are part of it. */
static u32 known_group(struct shapes *s, const struct lull_work *kernel)
{
	u32 *known = &s->by_launch[kernel->what];

	if (s->kernels.has_ranges)
		return group_of(s, kernel);
	if (!*known)
		*known = group_of(s, kernel) + 1;
	return *known - 1;
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct shapes *s = ctx;
	struct lull_work_cursor c;
	struct lull_work kernel;

	lull_work_begin(&c, s->reader, LULL_WORK_KERNEL, lull_kernels_wants(&s->kernels),
			lull_report_window(s->options));
	while (lull_work_next(&c, &kernel)) {
		if (lull_report_covers(s->options, kernel.start_ns, kernel.dur_ns))
			lull_sum_add(sum, lull_sum_group(sum, known_group(s, &kernel)),
				     kernel.dur_ns);
	}
	lull_work_end(&c);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *sums)
{
	const struct shapes *s = ctx;
	const struct group *group = lull_intern_get(&s->groups, (u32)sums->key);

	lull_gpu_put_shape(out, group->grid);
	lull_gpu_put_shape(out, group->block);
	lull_out_text(out, lull_kernels_text(&s->kernels, group->name));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct shapes s = { .reader = r, .options = options };
	struct lull_sum sum;

	(void)err;
	lull_kernels_init(&s.kernels, r, options);
	lull_intern_init(&s.groups);
	s.by_launch = lull_alloc((size_t)lull_reader_n_dim(r, LULL_TABLE_launch) + 1,
				 sizeof(*s.by_launch));
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	lull_sum_write(&sum, out, put_names, &s);
	lull_sum_release(&sum);
	lull_intern_release(&s.groups);
	free(s.by_launch);
	lull_kernels_release(&s.kernels);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_kern_gb_sum = {
	.name = "cuda_gpu_kern_gb_sum",
	.old_name = "gpukerngbsum",
	.display = "CUDA GPU Kernel/Grid/Block Summary",
	.summary = "time of kernels by name, grid and block",
	.help = "As cuda_gpu_kern_sum, with a row for each shape in which a kernel was launched.",
	.args = LULL_KERNELS_ARGS,
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(kernel),
	.sorted_by = 2,
	.page = { .tab = "kernels", .label = "by shape" },
	.run = run,
};
