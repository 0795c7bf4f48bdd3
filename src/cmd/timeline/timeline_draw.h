/*
 * timeline_draw - `lull timeline`: a few steps of a recording as lines of characters.
 *
 * What it gives:  for each device what ran by class, copies, idle time by cause, what the launching
 *                 thread and other threads did, and a legend with times.
 * Truth:          all of it is the answer of `lull why` (cause/why.h): the causes of a step add up
 *                 to what `lull why --format json` says of it.
 */
#ifndef LULL_CMD_TIMELINE_TIMELINE_DRAW_H
#define LULL_CMD_TIMELINE_TIMELINE_DRAW_H

#include <stdio.h>

#include "base/err.h"
#include "cause/why.h"

#define LULL_TIMELINE_NO_STEP UINT64_MAX

struct lull_timeline_look {
	u64 step;	 /* number of the step to show, LULL_TIMELINE_NO_STEP: some steady ones */
	u32 n_steps;	 /* how many, from that one on */
	int width;	 /* columns */
	bool is_ascii;	 /* no characters beyond ASCII */
	bool has_colour; /* escape sequences */
};

/* Draw it. LULL_E_NOT_FOUND if there is no such step. */
int lull_timeline_draw(FILE *to, const struct lull_why *why, const struct lull_timeline_look *look,
		       struct lull_err *err);

#endif
