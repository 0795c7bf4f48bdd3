/*
 * gate - the metrics of new reports against those of a baseline.
 *
 * What it gives:  one decision per metric and one overall: regressed if one is, else not comparable
 *                 if one is, else inconclusive if one is, else pass.
 * What it checks: whether the two sides may be compared at all (same program, same kind of device),
 *                 and whether the recordings are complete: one that is empty, truncated, damaged or
 *                 lost events never passes.
 * Ownership:      borrows readers, paths and specs until release.
 */
#ifndef LULL_COMPARE_GATE_H
#define LULL_COMPARE_GATE_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "compare/decide.h"
#include "compare/metric.h"
#include "compare/windows.h"
#include "trace/reader.h"

/* One report. Those of the ranks of a job follow each other and are one run. */
struct lull_gate_run {
	const char *path;
	u32 job; /* which job it is a rank of, counted from 1; 0 for none */
	struct lull_reader *reader;
	struct lull_windows steps;
};

/*
 * Add what an SQL query over the report gives: the numbers in the first column of its rows. Set by
 * who knows SQL; this folder does not.
 */
typedef int lull_gate_sql(struct lull_reader *r, const char *sql, struct lull_samples *to,
			  struct lull_err *err);

struct lull_gate_check {
	const char *spec; /* as the user wrote it */
	const struct lull_metric *metric;
	const char *arg;
	const char *sql; /* instead of a measure; NULL if none */
	struct lull_samples before;
	struct lull_samples after;
	struct lull_decision decision;
};

struct lull_gate {
	struct lull_vec before; /* struct lull_gate_run */
	struct lull_vec after;
	struct lull_vec checks; /* struct lull_gate_check */
	f64 threshold;		/* share of the baseline, or points of a share */
	lull_gate_sql *run_sql;
	bool allows_losses;
	bool allows_other_program;
	bool allows_other_device;
	enum lull_verdict verdict;
	struct lull_str why; /* of a verdict over all that is no metric's */
};

/* Nothing to compare yet; the threshold is 5 %. */
void lull_gate_init(struct lull_gate *gate);

/* Close the readers and free everything. */
void lull_gate_release(struct lull_gate *gate);

/* Add a report to a side (&gate->before or &gate->after); the gate owns the reader from now on. */
void lull_gate_add(struct lull_vec *side, const char *path, struct lull_reader *reader);

/*
 * Add a rank of a job: its values are averaged with those of the other ranks, step by step from the
 * last one backwards.
 */
void lull_gate_add_rank(struct lull_vec *side, const char *path, struct lull_reader *reader,
			u32 job);

/* Watch a metric; LULL_E_USAGE if there is none of this spec. */
int lull_gate_watch(struct lull_gate *gate, const char *spec, struct lull_err *err);

/* Watch what a query gives under this name; both borrowed. */
void lull_gate_watch_sql(struct lull_gate *gate, const char *name, const char *sql);

/* Measure and decide. Fails only where a metric cannot be measured for a reason of the caller's. */
int lull_gate_run(struct lull_gate *gate, struct lull_err *err);

/* A value of a metric as people read it: "10.2 ms", "78.1 %". */
void lull_gate_value(const struct lull_gate_check *check, f64 value, char *to, size_t cap_bytes);

/*
 * How a check's values changed, as people read it: "+7.8 % on average (+6.1 to +9.4)", "points"
 * for shares; "+7.8 %" or "the same" where they do not vary; "not compared".
 */
void lull_gate_change(const struct lull_gate_check *check, struct lull_str *to);

/* What a check found, as a sentence. */
void lull_gate_sentence(const struct lull_gate_check *check, struct lull_str *to);

/* Steps measured on a side. */
size_t lull_gate_n_steps(const struct lull_vec *side);

#endif
