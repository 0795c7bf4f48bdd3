/*
 * step_kernels - the steady steps of a process, how long their kernels run, and on tensor cores.
 *
 * Which steps:    those of `lull why` after warm-up that the filters of the report cover.
 * How long:       on the device, from the end of the work before the first of them to the end of
 *                 the work of the last, as `lull why` counts: the host may run far ahead.
 */
#ifndef LULL_REPORT_STEP_KERNELS_H
#define LULL_REPORT_STEP_KERNELS_H

#include "report/process_rounds.h"
#include "report/report.h"

/* Which launches run on tensor cores, by their names; each name is looked at once. */
struct lull_tensor_names {
	struct lull_reader *reader;
	u8 *known; /* by launch: 1 it does, 2 it does not; 0: not looked at */
};

struct lull_step_kernels {
	u32 n_steps;
	struct lull_span span; /* on the device */
	struct lull_span host; /* from the mark of the first to the end of the last */
	u64 kernel_ns;	       /* sum of the kernels of all these steps */
	u64 tensor_ns;	       /* of matrix products, convolutions and attention on tensor cores */
	u64 other_ns;	       /* of those that are not, or whose names do not say */
};

/* Prepare, and free. */
void lull_tensor_names_init(struct lull_tensor_names *t, struct lull_reader *r);
void lull_tensor_names_release(struct lull_tensor_names *t);

/* Sum them up. False if no steady step is covered. */
bool lull_step_kernels_of(struct lull_step_kernels *s, const struct lull_process_rounds *p,
			  const struct lull_report_options *options, struct lull_tensor_names *t);

#endif
