/*
 * progress - what base/progress shows while a recording runs.
 *
 *	lull: 12.3 s  4.56 M events  78.9 MiB  120 lost
 *
 * Standard output belongs to the recorded program and is never touched.
 */
#ifndef LULL_LAUNCH_PROGRESS_H
#define LULL_LAUNCH_PROGRESS_H

#include "base/progress.h"
#include "base/types.h"

struct lull_progress_state {
	u64 n_events;
	u64 written_bytes;
	u64 n_lost;
};

/* Redraw if the last time is long enough ago; call it as often as is convenient. */
void lull_progress_recording(struct lull_progress *p, const struct lull_progress_state *state);

#endif
