/*
 * kernel_show - the half of `lull kernel` that shows what was measured.
 *
 * cmd_kernel.c parses and decides; kernel_collect.c runs a program and reads counters;
 * kernel_print.c and kernel_tables.c show what a report holds.
 */
#ifndef LULL_CMD_KERNEL_KERNEL_SHOW_H
#define LULL_CMD_KERNEL_KERNEL_SHOW_H

#include <stdio.h>

#include "base/err.h"
#include "text/out.h"
#include "base/types.h"
#include "base/vec.h"
#include "cmd/kernel/kernel_collect.h"
#include "counter/profile.h"

enum lull_kernel_page {
	LULL_KERNEL_PAGE_VERDICT = 0,
	LULL_KERNEL_PAGE_DETAILS,
	LULL_KERNEL_PAGE_RAW,
	LULL_KERNEL_PAGE_SOURCE,
};

enum lull_kernel_summary {
	LULL_KERNEL_SUMMARY_NONE = 0,
	LULL_KERNEL_SUMMARY_KERNEL,
	LULL_KERNEL_SUMMARY_GPU,
	LULL_KERNEL_SUMMARY_NVTX,
};

struct lull_kernel_options {
	const struct lull_kernel_collect *which; /* name, skip, count and sections hold here, too */
	const char *import;			 /* the report to show */
	int page;				 /* enum lull_kernel_page */
	int summary;				 /* enum lull_kernel_summary */
	bool is_csv;
	const char *format;
	struct lull_out_options out;
	bool is_json;
	const struct lull_vec *usual; /* struct lull_kernel_usual of --from; NULL: none */
	bool wants_manual;	      /* print what the words mean, and end */
	u64 top;
};

/* Show what the report holds, as the options say. */
int lull_kernel_show(const char *path, const struct lull_kernel_options *options,
		     struct lull_err *err);

/* The launches that the options choose, in the order of the report. */
struct lull_kernel_choice {
	struct lull_reader *reader; /* borrowed */
	struct lull_profiles all;
	struct lull_vec chosen; /* struct lull_profile * */
};

/* For people: verdict, numbers, the thing to try; or all sections. */
int lull_kernel_print(const struct lull_kernel_choice *c, const struct lull_kernel_options *options,
		      FILE *to, struct lull_err *err);

/* A table of all metrics, or of all values of the sections. */
int lull_kernel_print_table(const struct lull_kernel_choice *c,
			    const struct lull_kernel_options *options, FILE *to,
			    struct lull_err *err);

/* One row for each kernel. */
int lull_kernel_print_summary(const struct lull_kernel_choice *c,
			      const struct lull_kernel_options *options, FILE *to,
			      struct lull_err *err);

/* What each verdict, wait and value means, for lull-kernels(7). */
void lull_kernel_print_manual(FILE *to);

/* Whether only the metrics of --metrics are shown: neither a set nor a section was named. */
bool lull_kernel_is_asked(const struct lull_kernel_options *options);

/* Whether a section is shown: all are unless some were named. */
bool lull_kernel_wants(const struct lull_kernel_options *options, const char *section);

#endif
