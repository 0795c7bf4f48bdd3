/*
 * by_column - sums of durations by the value of one column, such as the name of a function.
 *
 * For tables with start_ns, dur_ns and a column of ids.
 */
#ifndef LULL_REPORT_BY_COLUMN_H
#define LULL_REPORT_BY_COLUMN_H

#include "report/report.h"
#include "report/sum.h"

/* The ctx of lull_by_column_scan(). */
struct lull_by_column {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	enum lull_table table;
	const char *column; /* of u32 */
};

/* A lull_sum_scan: the key of a group is the column's value. */
void lull_by_column_scan(void *ctx, struct lull_sum *sum);

/* Rows of LULL_SUM_COLUMNS and what `names` fills; its ctx is `by`. */
void lull_by_column_put(struct lull_by_column *by, struct lull_out *out, lull_sum_names *names);

/* A lull_sum_names for columns of strings. */
void lull_by_column_put_string(void *ctx, struct lull_out *out, const struct lull_sum_group *group);

#endif
