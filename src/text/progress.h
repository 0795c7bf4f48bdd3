/*
 * progress - one line on standard error while work takes longer than a second: share, rate, time
 * left.
 *
 *	lull: exporting  45 %  31.2 M rows/s  2 s left
 *
 *	struct lull_progress p;
 *	lull_progress_init(&p, is_quiet);
 *	lull_progress_begin(&p, "exporting", "rows", n_rows);
 *	for (...)
 *		lull_progress_at(&p, n_done);	(as often as is convenient: per block, not per row)
 *	lull_progress_clear(&p);		(before anything else is printed, and at the end)
 *
 * Only on a terminal, in its foreground, at most four times a second, on one line that is erased at
 * the end. Standard output is never touched. The first second is counted from lull_progress_init(),
 * so that many short phases in a row show up, too.
 * Threads: one.
 */
#ifndef LULL_TEXT_PROGRESS_H
#define LULL_TEXT_PROGRESS_H

#include "base/str.h"
#include "base/types.h"

struct lull_progress {
	bool is_on;
	bool is_quiet;
	bool is_drawn;	  /* a line is on the screen */
	u64 begin_ns;	  /* of all */
	u64 drawn_ns;	  /* when the line was drawn last */
	const char *what; /* of this phase, borrowed */
	const char *unit; /* what is counted, NULL for bytes */
	u64 total;	  /* 0 if not known */
	u64 phase_ns;	  /* start of this phase */
};

/* Begin now. Nothing will be shown if standard error is no terminal or `is_quiet`. */
void lull_progress_init(struct lull_progress *p, bool is_quiet);

/*
 * Begin a phase: `what` is done to `total` things, 0 if their number is not known. `unit` is their
 * plural, NULL for bytes. Both are borrowed until the next phase.
 */
void lull_progress_begin(struct lull_progress *p, const char *what, const char *unit, u64 total);

/* This many are done. Redraws if the last time is long enough ago; costs a read of the clock. */
void lull_progress_at(struct lull_progress *p, u64 done);

/* Whether it is time to draw a line, for those who write their own; counts as drawn. */
bool lull_progress_is_due(struct lull_progress *p);

/* Show this text after "lull: " in place of the line. */
void lull_progress_draw(struct lull_progress *p, const char *text);

/* Print a line "lull: TEXT" that stays, on a terminal or not, unless all is to be quiet. */
void lull_progress_say(struct lull_progress *p, const char *text);

/* Erase the line, so that other messages can be printed; the next call draws it again. */
void lull_progress_clear(struct lull_progress *p);

/* Append what lull_progress_at() draws when `done` took `dur_ns`. */
void lull_progress_format(struct lull_str *to, const struct lull_progress *p, u64 done, u64 dur_ns);

#endif
