/*
 * duty - when a recording that is mostly off is on (--duty, --budget), and what it costs.
 *
 * Times:    windows start at random moments, so that they are not in step with the program. After
 *           each one the rest is planned from what was recorded so far: on average the share of
 *           recorded time is what was asked for.
 * Budget:   steps in windows are compared with steps outside of them, in the same run. What they
 *           take longer, and what the step before a window and those of a second after it do
 *           (CUPTI comes and goes there), is the cost; the rest is as long as the budget needs.
 *           Short steps are compared by their mean over some time: the machine's noise is longer
 *           than they are. Now and then a rest is long enough to see steps that no window has
 *           touched. Of a program without steps so much is assumed: a tenth of a window, or a
 *           microsecond for each event and a tenth of a second for CUPTI to come and go.
 * Threads:  the recorder's. No clock and no file is used here: tests give both.
 */
#ifndef LULL_RECORD_LIVE_DUTY_H
#define LULL_RECORD_LIVE_DUTY_H

#include "base/types.h"

struct lull_recording;
struct lull_task;
struct lull_wire_step;

#define LULL_DUTY_KEPT 64 /* steps, or groups of short ones, of which a median is taken */

/* The durations of the last steps; of short ones the mean of a group. */
struct lull_duty_steps {
	u64 n; /* ever */
	u64 last_ns[LULL_DUTY_KEPT];
	u64 group_ns; /* of the group that is not complete */
	u32 n_group;
};

/* What there was between the end of a window and the end of the next. */
struct lull_duty_count {
	u32 n_steps, n_outside;
	u64 steps_ns, outside_ns;
};

struct lull_duty {
	f64 share, budget; /* of the time; 0: not given */
	u64 seed, random;  /* as given; the present state */
	u64 start_ns;	   /* of the recording */
	u64 next_ns;	   /* when the next window is wanted */
	u64 recorded_ns;   /* in windows so far */
	u64 cost_ns;	   /* what they cost so far */
	u32 n_windows;	   /* that have ended */
	bool is_hurried;   /* the next window was asked for, and has not ended */

	const struct lull_task *task; /* whose steps are compared; the first that has some */
	struct lull_duty_steps outside, inside;
	u64 held_ns;		      /* the last step outside: the next one may be inside */
	i64 beside_ns;		      /* what steps before and after windows took longer */
	u32 n_after;		      /* steps outside since the last window */
	u64 after_ns;		      /* and their time */
	u64 assumed_ns;		      /* cost of the window if it has no steps; 0: not known */
	u64 before_ns;		      /* the usual step when that window ended */
	u32 n_seen;		      /* steps or groups after that time */
	u32 n_unseen;		      /* windows since there were enough of them */
	struct lull_duty_count count; /* since the last window */
	struct lull_duty_count total; /* before that */
};

/* Nothing recorded yet; a seed of 0 is one from the kernel. `share`, `budget` as above. */
void lull_duty_init(struct lull_duty *d, f64 share, f64 budget, u64 seed);

/* The recording starts: the first window is due soon. */
void lull_duty_start(struct lull_duty *d, u64 now_ns);

/* Whether it is time for a window. Puts it off if the budget has to wait. */
bool lull_duty_is_due(struct lull_duty *d, u64 now_ns);

/* Something happens that has to be seen: a window now. */
void lull_duty_hurry(struct lull_duty *d);

/* A window has ended: add it, and plan the next. What is counted since the last one goes to `to`.
 */
void lull_duty_ended(struct lull_duty *d, u64 dur_ns, u64 now_ns, struct lull_duty_count *to);

/* A step of a thread starts or ends: count and time the one before. */
void lull_duty_step(struct lull_duty *d, struct lull_recording *r, struct lull_task *task,
		    const struct lull_wire_step *e);

/* The same, once it is known which step that is. */
void lull_duty_add(struct lull_duty *d, u64 dur_ns, bool is_outside);

/* The same for what the window had, before it ends: events, and work of a device. */
void lull_duty_had(struct lull_duty *d, u64 n_events, bool has_device);

/* The usual step outside of windows, 0 if none is known. */
u64 lull_duty_usual_ns(const struct lull_duty *d);

#endif
