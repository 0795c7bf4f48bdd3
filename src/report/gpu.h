/*
 * gpu - what the reports about CUDA share: names, cells, and sums over work and calls.
 */
#ifndef LULL_REPORT_GPU_H
#define LULL_REPORT_GPU_H

#include "base/str.h"
#include "model/work.h"
#include "report/kernels.h"
#include "report/report.h"
#include "report/sum.h"

/* Millions of bytes, the usual unit of sizes in such tables. */
#define LULL_GPU_MB 1e6

/* What can be summed besides the kinds of enum lull_work_kind: calls of CUDA. */
#define LULL_GPU_CALLS 16u

/* The tables that work is in, for .needs_any. */
#define LULL_NEED_ANY_WORK \
	(LULL_NEED(kernel) | LULL_NEED(memcpy) | LULL_NEED(memset) | LULL_NEED(graph))

/* Append the name of a call without the version of its interface: a last _v and four digits. */
void lull_gpu_call_name(struct lull_str *to, struct lull_reader *r, u32 name);

/* Fill the next cell with that. */
void lull_gpu_put_call(struct lull_out *out, struct lull_reader *r, u32 name);

/* Append "[CUDA memcpy Host-to-Device]", "[CUDA memset]" or "[CUDA graph 7]". */
void lull_gpu_operation(struct lull_str *to, unsigned kind, u32 what);

/* Append the name of any work. */
void lull_gpu_work_name(struct lull_str *to, struct lull_kernels *kernels,
			const struct lull_work *work);

/* Fill the next cell with a grid or a block: three numbers, four columns each. */
void lull_gpu_put_shape(struct lull_out *out, const u32 shape[3]);

/* What a device is called: "NVIDIA H200 (0)"; nothing for device 0. */
void lull_gpu_device_name(struct lull_str *to, struct lull_reader *r, u32 device);

/* The number of the device of a stream in its process, as programs know it. */
u32 lull_gpu_device_id(struct lull_reader *r, u32 lane);

/* The same for each lane, by its id. Free with free(). */
u32 *lull_gpu_device_ids(struct lull_reader *r);

/* The row of a lane; one of zeros for lane 0. */
struct lull_lane_row lull_gpu_lane(struct lull_reader *r, u32 lane);

/* Fill the next cell with the green context of a stream; empty, for none is recorded. */
void lull_gpu_put_green(struct lull_out *out, struct lull_reader *r,
			const struct lull_lane_row *stream);

/* The columns of category and operation, for sums over more than one kind. */
#define LULL_GPU_CATEGORY_COLUMNS                                                           \
	{ .name = "Category",                                                               \
	  .kind = LULL_OUT_TEXT,                                                            \
	  .doc = "CUDA_API, CUDA_KERNEL, MEMORY_OPER or CUDA_GRAPH" },                      \
	{                                                                                   \
		.name = "Operation", .kind = LULL_OUT_TEXT, .doc = "function or operation", \
		.is_kernel = true                                                           \
	}

/*
 * Rows of sums by name over the kinds of work in `kinds` and LULL_GPU_CALLS: LULL_SUM_COLUMNS, the
 * category if has_category, the name.
 */
void lull_gpu_sum(struct lull_reader *r, struct lull_out *out,
		  const struct lull_report_options *options, unsigned kinds, bool has_category);

#endif
