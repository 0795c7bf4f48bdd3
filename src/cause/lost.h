/*
 * lost - the time of CUDA calls in which the thread has nothing to wait for, and no CPU.
 *
 * A thread that was preempted in a call is one that the scheduler's records tell. They do not tell
 * when a thread that slept was woken up. Where the device has done what the call waits for and the
 * thread still does not run, it was woken up late if it lacks CPUs otherwise, too: of the time in
 * which it could have run, it was preempted for a part.
 *
 * Not it:  a call that holds something else than work of the device up, in a program that has the
 *          CPUs it needs (a lock of the driver).
 */
#ifndef LULL_CAUSE_LOST_H
#define LULL_CAUSE_LOST_H

#include "cause/subject.h"
#include "model/span.h"

/*
 * The next such time of the call `node` in [from_ns, to_ns), in which the device is idle. False if
 * there is none.
 */
bool lull_lost_next(const struct lull_subject *s, u32 node, u64 from_ns, u64 to_ns,
		    struct lull_span *lost);

/* All of it together. */
u64 lull_lost_ns(const struct lull_subject *s, u32 node, u64 from_ns, u64 to_ns);

/* Of the time in which the launching threads could run, the part in which they had no CPU. */
f64 lull_lost_share(const struct lull_subject *s);

#endif
