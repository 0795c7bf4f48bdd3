/*
 * marks - calls that mean something only beside others: a loop that asks whether work is done, many
 * small copies in one step, and a call that is far longer than the others of its name.
 */
#ifndef LULL_CAUSE_MARKS_H
#define LULL_CAUSE_MARKS_H

#include "cause/subject.h"

#define LULL_MARK_POLL	     1u	  /* asks again what it asked before; so is the gap before it */
#define LULL_MARK_POLL_FIRST 2u	  /* the first time that it asks */
#define LULL_MARK_POLL_LAST  4u	  /* the last time */
#define LULL_MARK_SMALL	     8u	  /* one of many small copies to the device, or waits for it */
#define LULL_MARK_SMALL_GAP  16u  /* the gap before it lies between two of these */
#define LULL_MARK_PREEMPTED  32u  /* the thread had no CPU for most of the call */
#define LULL_MARK_START_UP   64u  /* far longer than others of its name: a first use */
#define LULL_MARK_VALUE	     128u /* one of many values that are copied to the host one by one */
#define LULL_MARK_POLLS	     (LULL_MARK_POLL | LULL_MARK_POLL_FIRST | LULL_MARK_POLL_LAST)

/* Fill s->marks. */
void lull_subject_mark(struct lull_subject *s);

/*
 * Mark calls in which something starts up, for a subject whose time is not of steps: there, a call
 * that is far longer than usual is the first use of a device, a library or a kernel.
 */
void lull_subject_mark_start_up(struct lull_subject *s);

#endif
