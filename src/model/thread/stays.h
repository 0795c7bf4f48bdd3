/*
 * stays - when threads were on a CPU, in the order of time.
 *
 * The blocks of a report may overlap: a stay is written when it ends, so a long one comes after
 * shorter ones that began later. Whoever looks from one stay to the next has to sort them first.
 *
 * Memory:         24 bytes for each stay, twice that while they are sorted.
 */
#ifndef LULL_MODEL_THREAD_STAYS_H
#define LULL_MODEL_THREAD_STAYS_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

/* sched.end_reason */
#define LULL_STAY_WAITED    1 /* it ended since the thread waits for something */
#define LULL_STAY_PREEMPTED 2 /* it ended although the thread has work */

struct lull_stay {
	u64 begin_ns; /* first: they are sorted by it */
	u64 end_ns;
	u32 lane;
	u8 end_reason;
};

/*
 * Collect the stays that meet [from_ns, to_ns) of the lanes for which `counts` is not 0 into
 * `stays`, a vector of struct lull_stay. Returns whether any thread's were recorded.
 */
bool lull_stays_collect(struct lull_vec *stays, struct lull_reader *r, u64 from_ns, u64 to_ns,
			const u8 *counts);

#endif
