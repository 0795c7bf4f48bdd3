/*
 * heat - a heat map of ranks by steps with few cells: which rank was late, and when.
 *
 * Where there are more ranks or steps than cells, a cell shows the largest of what it covers, so
 * that one late rank of ten thousand is visible.
 */
#ifndef LULL_JOB_HEAT_H
#define LULL_JOB_HEAT_H

#include "base/types.h"
#include "job/job.h"

enum lull_heat_kind {
	LULL_HEAT_LATE, /* after the mean of the others */
	LULL_HEAT_WAIT, /* in collectives, exposed */
	LULL_HEAT_STEP, /* length of the step, over the shortest */
};

struct lull_heat {
	u32 n_rows, n_columns;
	u32 ranks_a_row, steps_a_column;
	f64 *ns; /* n_rows * n_columns; negative: not recorded */
	f64 most_ns;
};

/* Fold ranks and steps into at most so many cells. Free with lull_heat_release(). */
void lull_heat_init(struct lull_heat *h, const struct lull_job *job, enum lull_heat_kind kind,
		    u32 max_rows, u32 max_columns);

/* Free it. */
void lull_heat_release(struct lull_heat *h);

#endif
