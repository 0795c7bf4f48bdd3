/*
 * cuda_gpu_mem_size_sum: bytes of copies and memsets by direction.
 */
#include "report/gpu.h"

#define SIZE_COLUMN(text, meaning)                                                                \
	{                                                                                         \
		.name = text, .kind = LULL_OUT_FLOAT, .unit = "MB", .decimals = 3, .doc = meaning \
	}

static const struct lull_out_column columns[] = {
	SIZE_COLUMN("Total", "sum of the sizes; 1 MB is a million bytes"),
	{ .name = "Count", .kind = LULL_OUT_INT, .doc = "how many" },
	SIZE_COLUMN("Avg", "mean size"),
	SIZE_COLUMN("Med", "median size"),
	SIZE_COLUMN("Min", "smallest"),
	SIZE_COLUMN("Max", "largest"),
	SIZE_COLUMN("StdDev", "standard deviation of the sample"),
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
		u32 key = work.kind == LULL_WORK_MEMSET ? MEMSET_KEY : work.what;

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
	lull_out_f64(s->out, (f64)group->total_ns / LULL_GPU_MB);
	lull_out_i64(s->out, (i64)group->n);
	lull_out_f64(s->out, (f64)group->total_ns / (f64)group->n / LULL_GPU_MB);
	lull_out_f64(s->out, group->median_ns / LULL_GPU_MB);
	lull_out_f64(s->out, (f64)group->min_ns / LULL_GPU_MB);
	lull_out_f64(s->out, (f64)group->max_ns / LULL_GPU_MB);
	lull_out_f64(s->out, lull_sum_deviation(group) / LULL_GPU_MB);
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
	.run = run,
};
