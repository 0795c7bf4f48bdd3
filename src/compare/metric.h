/*
 * metric - what a gate watches: one number per step.
 *
 * What it gives:  the list of metrics, one by its spec (`step_time`, `kernel:gemm`), and its value
 *                 in each step of a report.
 * Rule:           a metric measures windows of time, or has values of its own, such as one for each
 *                 request; it knows nothing of baselines.
 *
 * To add one: metric_X.c with const struct lull_metric lull_metric_X at its end, METRIC(X) in
 * metrics.def, its line in doc/lull-gate.1.md.
 */
#ifndef LULL_COMPARE_METRIC_H
#define LULL_COMPARE_METRIC_H

#include "base/err.h"
#include "text/out.h"
#include "base/types.h"
#include "base/vec.h"
#include "compare/decide.h"
#include "compare/windows.h"
#include "trace/reader.h"

struct lull_metric {
	const char *name;    /* in specs and configs; never changes */
	const char *alias;   /* a shorter name that is taken as well, or NULL */
	const char *arg;     /* what stands after the colon, such as NAME; NULL if nothing does */
	const char *summary; /* one phrase */
	enum lull_out_kind kind;
	bool is_share;	 /* a share of the step: differences are compared */
	bool is_of_host; /* measures what threads do: gets the windows of the host */
	bool is_means; /* matters only for the step time: worse in a faster step is no regression */
	const char *unit; /* printed after the number, such as J; NULL: what the kind prints */
	/*
	 * Fill value[i], zeroed before, for window i (struct lull_span, by start, not overlapping).
	 */
	int (*measure)(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		       f64 *value, struct lull_err *err);
	/* Instead of that, for metrics that need no steps: add all values of the report. */
	int (*sample)(struct lull_reader *r, struct lull_samples *to, struct lull_err *err);
	const char *each; /* what has one value, in the plural; NULL: steps */
};

/* The metric that the others are for. */
extern const struct lull_metric lull_metric_step_time;

/* All of metrics.def in its order, NULL at the end. */
extern const struct lull_metric *const lull_metrics[];

/*
 * The metric of a spec NAME or NAME:ARG; *arg is what stands after the colon, borrowed from
 * `spec`, or NULL. LULL_E_USAGE with a sentence if there is none, or the argument is missing.
 */
int lull_metric_find(const char *spec, const struct lull_metric **metric, const char **arg,
		     struct lull_err *err);

/* Add the values of one report as one run. */
int lull_metric_sample(const struct lull_metric *metric, const char *arg, struct lull_reader *r,
		       const struct lull_windows *windows, struct lull_samples *to,
		       struct lull_err *err);

/* A value as people read it: "10.2 ms", "78.1 %", "3.5 J". */
void lull_metric_value(const struct lull_metric *metric, f64 value, char *to, size_t cap_bytes);

/* The window in which `at_ns` lies, or SIZE_MAX. */
size_t lull_metric_window(const struct lull_vec *windows, u64 at_ns);

#endif
