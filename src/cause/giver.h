/*
 * giver - the thread that ends the waits of the launching thread, where it waits itself.
 *
 * A launching thread that waits for a queue or a condition goes on when another thread hands
 * something over. That one need not be at work: a thread that sleeps between two samples of a
 * sensor, or that reads from a pipe which another program fills, hands over as soon as its own call
 * ends. So its call ends shortly before the wait does, each time; a thread that sleeps for other
 * reasons does so by chance.
 *
 * What it gives:  such a thread, or one of several with the same name; what it waits in.
 * By what:        calls of the C library and the scheduler's records, of this process and its
 *                 children.
 * Not it:         a thread that waits for a lock or a queue in turn; one that reads what a child
 *                 process may send; anybody, if threads of the program work meanwhile:
 *                 cause/evidence.h tells who.
 * Cost:           one walk over the calls of libc and one over the scheduler's records, if there
 *                 are such waits.
 */
#ifndef LULL_CAUSE_GIVER_H
#define LULL_CAUSE_GIVER_H

#include "base/types.h"

struct lull_subject;

struct lull_giver {
	u32 lane;      /* 0: there is none */
	u32 call;      /* string: what it waits in */
	u32 stack;     /* of that call, or 0 */
	u64 at_ns;     /* in the middle of it */
	bool is_sleep; /* for a time; else for data from elsewhere */
};

/* Look at who ends the waits of `s`, whose long gaps are sliced. */
void lull_giver_init(struct lull_giver *g, const struct lull_subject *s);

#endif
