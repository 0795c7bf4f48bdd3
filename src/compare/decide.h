/*
 * decide - pass, regressed, or cannot tell: two sets of measurements of one metric.
 *
 * What it gives:  a verdict with its numbers, and how many measurements would be needed if there
 *                 are too few.
 * Rule:           regressed if the test finds the new side worse (false alarms: alpha) and the
 *                 shift is more than half the threshold; pass if the interval of the shift excludes
 *                 the threshold; else inconclusive. Values that do not vary at all are compared
 *                 directly.
 * Runs:           values come from one or more runs per side. With MIN_RUNS on each side, their
 *                 medians are compared instead of the single steps, since differences between runs
 *                 affect all steps of a run. With fewer, the result is inconclusive if runs of one
 *                 side differ by more than the threshold.
 * Memory:         borrows the values.
 */
#ifndef LULL_COMPARE_DECIDE_H
#define LULL_COMPARE_DECIDE_H

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

/* Fewer measurements than this on a side decide nothing. */
#define LULL_DECIDE_MIN_VALUES 5

/* From so many runs on each side on, runs are compared, not steps. */
#define LULL_DECIDE_MIN_RUNS 4

/* A shift is reported as a regression from this share of the threshold on. */
#define LULL_DECIDE_LEAST_SHIFT 0.54

/* A change of the means that differs by less from the one that is said is not worth a line. */
#define LULL_DECIDE_LEAST_TAIL 0.05

enum lull_verdict {
	LULL_PASS = 0,
	LULL_REGRESSED = 1,
	LULL_INCONCLUSIVE = 2,
	LULL_NOT_COMPARABLE = 3,
	LULL_FAILED = 4, /* a limit is not kept; lull_decide() never says so */
};

/* The measurements of one metric on one side. */
struct lull_samples {
	struct lull_vec values; /* f64 */
	struct lull_vec runs;	/* size_t: where the values of each run end */
};

/* Nothing measured yet. */
void lull_samples_init(struct lull_samples *s);

/* Free the values. */
void lull_samples_release(struct lull_samples *s);

/* One more value of the current run. */
void lull_samples_add(struct lull_samples *s, f64 value);

/* The current run is over; one without values does not count. */
void lull_samples_end_run(struct lull_samples *s);

/* The median of n values, at least one. */
f64 lull_median(const f64 *values, size_t n);

/*
 * The median of the values; from LULL_DECIDE_MIN_RUNS runs on that of the medians of the runs. 0 if
 * there are none.
 */
f64 lull_samples_median(const struct lull_samples *s);

/* The median of one run. */
f64 lull_samples_run(const struct lull_samples *s, size_t run);

/* The least and the largest median of the runs; 0 and 0 if there are none. */
void lull_samples_range(const struct lull_samples *s, f64 *low, f64 *high);

struct lull_decide_rule {
	f64 threshold; /* the change that matters, as a share of the baseline; points of a share */
	f64 alpha;     /* false alarms */
	bool is_share; /* the metric is a share itself: differences, not ratios, are compared */
	bool is_higher_better;
};

/*
 * With it 30 steps a side with 5 % of noise show a change of 5 % in 95.2 of 100 cases, and none
 * where there is none in 98.1 of 100 (test_decide): together with the least shift, the best there
 * is.
 */
#define LULL_DECIDE_ALPHA 0.024

struct lull_decision {
	enum lull_verdict verdict;
	f64 before; /* median */
	f64 after;
	f64 mean_before; /* of all values, long ones too */
	f64 mean_after;
	/*
	 * How far the mean of the new side lies from that of the baseline, as a share of it, or in
	 * points for shares; worse is positive. Of logarithms, and clipped as in compare/shift.h,
	 * so it is not the change of the medians; where no side varies, it is that as well.
	 */
	f64 change;
	f64 low; /* 90 % interval of the change */
	f64 high;
	bool has_change; /* false: nothing was compared, see `why` */
	f64 p;		 /* chance of so much worse values if nothing changed */
	size_t n_before; /* what was compared: steps, or runs */
	size_t n_after;
	bool by_run;
	size_t n_needed; /* on each side, to decide about the threshold; 0 if they sufficed */
	char why[512];	 /* why nothing could be decided */
};

/* Compare two sides. */
void lull_decide(const struct lull_samples *before, const struct lull_samples *after,
		 const struct lull_decide_rule *rule, struct lull_decision *d);

/*
 * Add how much longer or shorter a step takes: "on average 2.10 x faster (-52.4 %, between ...)",
 * "no change to be seen (...)" or "the same". For decisions that have a change.
 */
void lull_decide_say(const struct lull_decision *d, struct lull_str *to);

/*
 * Whether rare long steps, which have little weight in the change, make another one of all steps
 * together: the change of the means lies outside of the interval.
 */
bool lull_decide_is_tail(const struct lull_decision *d);

/* "pass", "regressed", "inconclusive", "not comparable" or "failed". */
const char *lull_verdict_name(enum lull_verdict verdict);

/* Whether a verdict refuses the change. */
static inline bool lull_verdict_is_bad(enum lull_verdict verdict)
{
	return verdict == LULL_REGRESSED || verdict == LULL_FAILED;
}

#endif
