/*
 * cuda_gpu_mem_size_sum: bytes of copies and memsets by direction.
 */
#include "model/names.h"
#include "report/gpu.h"

static const struct lull_out_column columns[] = {
	LULL_SUM_SIZE_COLUMNS("Total", "Count"),
	{ .name = "Operation", .kind = LULL_OUT_TEXT, .doc = "copy by direction, or memset" },
};

struct sizes {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	struct lull_out *out;
};

/* A copy's direction is a byte; the memsets are beside them. */
#define MEMSET_KEY 256u

static void scan(void *ctx, struct lull_sum *sum)
{
	const struct sizes *s = ctx;
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, s->reader, LULL_WORK_MEMORY, LULL_WORK_WANT_BYTES,
			lull_report_window(s->options));
	while (lull_work_next(&c, &work)) {
		u32 key = work.kind == LULL_WORK_MEMSET ? MEMSET_KEY
							: lull_names_copy_kind(work.what);

		if (lull_report_covers(s->options, work.start_ns, work.dur_ns))
			lull_sum_add(sum, lull_sum_group(sum, key), work.size_bytes);
	}
	lull_work_end(&c);
}

/* What the sum calls ns are bytes here. */
static void put_row(void *ctx, const struct lull_sum_group *group)
{
	const struct sizes *s = ctx;
	struct lull_str text = LULL_STR_INIT;

	lull_gpu_operation(&text, group->key == MEMSET_KEY ? LULL_WORK_MEMSET : LULL_WORK_MEMCPY,
			   (u32)group->key);
	lull_out_row(s->out);
	lull_sum_put_sizes(s->out, group);
	lull_out_text(s->out, lull_str_text(&text));
	lull_str_release(&text);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct sizes s = { r, options, out };
	struct lull_sum sum;

	(void)err;
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	lull_sum_each(&sum, put_row, &s);
	lull_sum_release(&sum);
	return LULL_OK;
}

const struct lull_report lull_report_cuda_gpu_mem_size_sum = {
	.name = "cuda_gpu_mem_size_sum",
	.old_name = "gpumemsizesum",
	.display = "CUDA GPU MemOps Summary (by Size)",
	.summary = "bytes of copies and memsets by direction",
	.help = "How much was copied and set on the devices, by direction.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(memcpy) | LULL_NEED(memset),
	.is_default = true,
	.sorted_by = 1,
	.page = { .tab = "copies", .label = "by size", .names = "Operation" },
	.run = run,
};
