/*
 * axis - the time of a report that was recorded in windows.
 *
 * Windows follow each other without the time between them: then device and threads never seem to
 * wait for the next window, and every analysis works as on a recording without windows. Work that
 * a device still does when a window ends is let finish before the next window starts.
 *
 * Times:    CLOCK_MONOTONIC in, time of the report out. A moment between two windows becomes the
 *           end of the first one.
 * Cost:     a comparison for a time in the present window, else a binary search.
 */
#ifndef LULL_RECORD_AXIS_H
#define LULL_RECORD_AXIS_H

#include "base/types.h"
#include "base/vec.h"

struct lull_axis_window {
	u64 begin_ns, end_ns; /* end UINT64_MAX while it is open */
	u64 at_ns;	      /* when it starts in the report */
};

struct lull_axis {
	struct lull_vec windows; /* struct lull_axis_window */
	u64 reach_ns;		 /* the end of all work of devices so far */
};

/* No window yet: every time is 0. */
void lull_axis_init(struct lull_axis *a);

/* Free it. */
void lull_axis_release(struct lull_axis *a);

/* A window starts at this moment, after all others; it is open. */
void lull_axis_open(struct lull_axis *a, u64 begin_ns);

/* The open window ends at this moment, or has none of it if that is before its start. */
void lull_axis_close(struct lull_axis *a, u64 end_ns);

/* Whether a window is open. */
bool lull_axis_is_open(const struct lull_axis *a);

/* The time in the report of a moment. */
u64 lull_axis_ns(const struct lull_axis *a, u64 mono_ns);

/* When the present window started, or the last one; 0 if there was none. */
u64 lull_axis_since_ns(const struct lull_axis *a);

/* A device works until then (in the time of the report). */
static inline void lull_axis_reach(struct lull_axis *a, u64 end_ns)
{
	a->reach_ns = end_ns > a->reach_ns ? end_ns : a->reach_ns;
}

#endif
