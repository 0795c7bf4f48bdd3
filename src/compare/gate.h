/*
 * gate - the metrics of new reports against those of a baseline.
 *
 * What it gives:  one decision per metric and one overall: regressed if one is, else failed if a
 *                 limit is not kept, else not comparable, inconclusive or pass.
 * What counts:    a check that only warns decides nothing, nor does a metric that matters only for
 *                 the step time (more launches) where the step got faster.
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

/* What a check asks. */
enum lull_gate_kind {
	LULL_GATE_CHANGE = 0, /* did the metric get worse than in the baseline */
	LULL_GATE_BOUND,      /* does its median keep a limit; needs no baseline */
	LULL_GATE_SPEEDUP,    /* did the step get so many times as fast */
};

/* What a check that went wrong means. */
enum lull_gate_weight {
	LULL_GATE_DECIDES = 0,
	LULL_GATE_WARNS,  /* the user wants to see it, no more */
	LULL_GATE_REMARK, /* it does not matter, as the step got faster */
};

/* A query and what it is called. */
struct lull_gate_named {
	const char *name;
	const char *sql;
};

struct lull_gate_check {
	enum lull_gate_kind kind;
	enum lull_gate_weight weight;
	f64 limit; /* of a bound, in the metric's unit; of a speed-up: how many times as fast */
	bool is_inclusive; /* a bound may be reached */
	char *owned;	   /* where `arg` lies, if it is not in `spec` */
	const char *spec;  /* as the user wrote it */
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
	struct lull_vec checks;	 /* struct lull_gate_check */
	struct lull_vec queries; /* struct lull_gate_named */
	f64 threshold;		 /* share of the baseline, or points of a share */
	lull_gate_sql *run_sql;
	bool allows_losses;
	bool allows_other_program;
	bool allows_other_device;
	enum lull_verdict verdict;
	struct lull_str why;  /* of a verdict over all that is no metric's */
	struct lull_str note; /* what is worth a look, though it decides nothing */
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

/* A query that can be watched, bounded and measured by this name; both borrowed. */
void lull_gate_name_query(struct lull_gate *gate, const char *name, const char *sql);

/* Compare a metric, or a named query; LULL_E_USAGE if there is none of this spec. */
int lull_gate_watch(struct lull_gate *gate, const char *spec, struct lull_err *err);

/* Watch a bound (compare/bound.h) on the new side; `text` is borrowed. */
int lull_gate_bound(struct lull_gate *gate, const char *text, enum lull_gate_weight weight,
		    struct lull_err *err);

/* Demand that a step is `factor` times as fast as in the baseline; `text` names the check. */
void lull_gate_speedup(struct lull_gate *gate, const char *text, f64 factor);

/* Let a metric only warn; it is watched if it is not yet. After those that decide. */
int lull_gate_warn(struct lull_gate *gate, const char *spec, struct lull_err *err);

/* Add the values of a metric or named query on the new side to `to`; *metric says what they are. */
int lull_gate_measure(const struct lull_gate *gate, const char *spec,
		      const struct lull_metric **metric, struct lull_samples *to,
		      struct lull_err *err);

/* Measure and decide. Fails only where a metric cannot be measured for a reason of the caller's. */
int lull_gate_run(struct lull_gate *gate, struct lull_err *err);

/* A value of a metric as people read it: "10.2 ms", "78.1 %". */
void lull_gate_value(const struct lull_gate_check *check, f64 value, char *to, size_t cap_bytes);

/*
 * How a check's values changed, as people read it: "+7.8 % on average (+6.1 to +9.4)", "points"
 * for shares; "+7.8 %" or "the same" where they do not vary; "not compared".
 */
void lull_gate_change(const struct lull_gate_check *check, struct lull_str *to);

/* "pass", "regressed", "warning", "remark", ...: what a check found, in a word. */
const char *lull_gate_word(const struct lull_gate_check *check);

/* What a check adds to the verdict over all: "pass" where it only warns. */
enum lull_verdict lull_gate_counted(const struct lull_gate_check *check);

/* What a check found, as a sentence. */
void lull_gate_sentence(const struct lull_gate_check *check, struct lull_str *to);

/* Steps measured on a side. */
size_t lull_gate_n_steps(const struct lull_vec *side);

#endif
