/*
 * record_progress - the line that text/progress shows during a recording.
 *
 *	lull: 12.3 s  4.56 M events  78.9 MiB  120 lost
 *
 * Standard output belongs to the recorded program and is never used. Neither is the terminal if the
 * program uses it, too: it may show prompts, progress bars or full-screen pages. So the line is
 * only shown if the program writes to files or pipes.
 */
#ifndef LULL_RECORD_SESSION_RECORD_PROGRESS_H
#define LULL_RECORD_SESSION_RECORD_PROGRESS_H

#include <sys/types.h>

#include "text/progress.h"
#include "base/types.h"

struct lull_progress_state {
	u64 n_events;
	u64 written_bytes;
	u64 n_lost;
	pid_t pid; /* the program, 0 if it has ended */
};

/* Redraw if the last time is long enough ago; call it as often as is convenient. */
void lull_progress_recording(struct lull_progress *p, const struct lull_progress_state *state);

#endif
