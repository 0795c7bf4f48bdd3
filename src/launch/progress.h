/*
 * progress - one quiet line on standard error while a recording runs.
 *
 *	lull: 12.3 s  4.56 M events  78.9 MiB  120 lost
 *
 * Only on a terminal, at most four times a second, on one line that is erased at the end. Standard
 * output belongs to the recorded program and is never touched.
 * Threads: one.
 */
#ifndef LULL_LAUNCH_PROGRESS_H
#define LULL_LAUNCH_PROGRESS_H

#include "base/types.h"

struct lull_progress {
	bool is_on;
	bool is_drawn; /* a line is on the screen */
	u64 begin_ns;
	u64 drawn_ns; /* when the line was drawn last */
};

struct lull_progress_state {
	u64 n_events;
	u64 written_bytes;
	u64 n_lost;
};

/* Begin now. Nothing will be shown if standard error is no terminal or `is_quiet`. */
void lull_progress_init(struct lull_progress *p, bool is_quiet);

/* Redraw if the last time is long enough ago; call it as often as is convenient. */
void lull_progress_write(struct lull_progress *p, const struct lull_progress_state *state);

/* Erase the line, so that other messages can be printed; the next write draws it again. */
void lull_progress_clear(struct lull_progress *p);

#endif
