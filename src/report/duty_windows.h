/*
 * duty_windows - the windows of a recording that was mostly off (--duty), and what sums over them
 * say about the whole run.
 *
 * Estimate:       what a step (or a second, of a program without steps) had on average in the
 *                 windows, times the steps (seconds) of the whole run: a ratio estimator. Windows
 *                 are random and far apart, so their differences say how sure that is: the error
 *                 is the half width of the 95 % interval, by Student's t. Two windows are the
 *                 least.
 */
#ifndef LULL_REPORT_DUTY_WINDOWS_H
#define LULL_REPORT_DUTY_WINDOWS_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

struct lull_duty_window {
	u64 start_ns, dur_ns;
	u32 n_steps;
};

struct lull_duty_windows {
	struct lull_vec all; /* struct lull_duty_window, by start */
	u64 recorded_ns;     /* in all of them */
	u64 elapsed_ns;	     /* from the first of them, or the start of the program, to the end */
	u64 n_steps;	     /* in windows */
	u64 n_all_steps;     /* and outside of them; 0: the program marks none */
};

struct lull_duty_estimate {
	f64 value; /* for the whole run */
	f64 error; /* plus or minus; NAN if it is not known */
};

/* Read them; false if the recording has none. Free with lull_duty_windows_release(). */
bool lull_duty_windows_read(struct lull_duty_windows *w, struct lull_reader *r);

/* Free them. */
void lull_duty_windows_release(struct lull_duty_windows *w);

/* The window at this time of the report; those between two belong to the first. */
size_t lull_duty_windows_find(const struct lull_duty_windows *w, u64 ns);

/* The whole run's sum of what each window has this much of. */
struct lull_duty_estimate lull_duty_windows_estimate(const struct lull_duty_windows *w,
						     const f64 *sums);

#endif
