/*
 * kernels - the names of kernels in reports, by the report's arguments.
 *
 *	base		only the function's own name: gemm for void ns::gemm<float>(float *)
 *	mangled		the mangled name
 *	nvtx-name	after the innermost range in which it was launched: ":step/gemm"
 *
 * Names are numbered, so that they can be part of a key.
 */
#ifndef LULL_REPORT_KERNELS_H
#define LULL_REPORT_KERNELS_H

#include "base/intern.h"
#include "base/map.h"
#include "model/link.h"
#include "model/nest.h"
#include "report/report.h"

/* The arguments of a report that names kernels: .args. */
#define LULL_KERNELS_ARGS "nvtx-name base mangled"

struct lull_kernels {
	struct lull_reader *reader;
	const struct lull_launch_row *launches;
	u32 *names;		  /* private: number of the plain name by launch id */
	struct lull_intern texts; /* private */
	bool has_ranges;	  /* nvtx-name was given */
	struct lull_map prefixed; /* private: label and plain name to number + 1 */
	struct lull_link link;	  /* only if has_ranges */
	struct lull_nest nest;	  /* only if has_ranges */
};

/* Read the names of the recording. */
void lull_kernels_init(struct lull_kernels *k, struct lull_reader *r,
		       const struct lull_report_options *options);

/* Free them. */
void lull_kernels_release(struct lull_kernels *k);

/* What lull_work_begin() has to want for lull_kernels_name(). */
unsigned lull_kernels_wants(const struct lull_kernels *k);

/* The number of the name of a kernel. */
u32 lull_kernels_name(struct lull_kernels *k, const struct lull_work *kernel);

/* The text of that number, valid until the next lull_kernels_name(). */
const char *lull_kernels_text(const struct lull_kernels *k, u32 name);

/* How the kernel was launched, never NULL. */
const struct lull_launch_row *lull_kernels_launch(const struct lull_kernels *k,
						  const struct lull_work *kernel);

#endif
