/*
 * functions - reports over samples: CPU time of functions, alone and including their callees.
 */
#ifndef LULL_REPORT_FUNCTIONS_H
#define LULL_REPORT_FUNCTIONS_H

#include "text/out.h"
#include "report/report.h"

/* Which samples, and which cells. */
struct lull_functions {
	enum lull_table table;
	const char *weight; /* column with the weight of a sample, NULL if each counts 1 */
	const char *skip; /* column that is not 0 in samples to leave out; NULL if there is none */
	bool has_count;	  /* a cell with the number of samples */
	bool has_module;  /* a cell with the file or layer it is in */
};

/*
 * A row for each function, the largest weight of its own first: its share of all weight, alone and
 * with what it calls; the two weights; [the number of samples;] its name, or its address if it has
 * none; [the name of its library, [kernel] or [jit];] file:line of the place with most of its
 * weight.
 */
void lull_functions_put(struct lull_reader *r, struct lull_out *out,
			const struct lull_report_options *options,
			const struct lull_functions *functions);

#endif
