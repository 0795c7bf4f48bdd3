/*
 * others - when other threads of the program were at work: a thread that waits may wait for them.
 *
 * At work is: on a CPU or ready for one, by the scheduler's records, else by samples; or reading a
 * file, or a socket in a program that is no server. Counted are threads of the process that launch
 * no work, and those of its child processes, but for those that mostly spin in OpenMP's runtime.
 * Moments at which several are at work count once.
 *
 * Memory:         24 bytes for each stretch.
 */
#ifndef LULL_MODEL_THREAD_OTHERS_H
#define LULL_MODEL_THREAD_OTHERS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/chain.h"
#include "trace/reader.h"

struct lull_others {
	struct lull_vec spans; /* struct lull_others_span by time, none overlaps another */
	bool is_known;	       /* something was recorded that would show them */
};

struct lull_others_span {
	u64 from_ns;
	u64 to_ns;
	u64 before_ns; /* all earlier ones together */
};

/*
 * Collect them for the threads of `process` outside of the chain; `without` as in lull_host_init().
 */
void lull_others_init(struct lull_others *o, struct lull_reader *r, u32 process,
		      const struct lull_chain *c, u32 without);

/* When the threads of the chain were on a CPU, by the scheduler's records alone. */
void lull_others_init_launching(struct lull_others *o, struct lull_reader *r,
				const struct lull_chain *c, u32 without);

/* Free it. */
void lull_others_release(struct lull_others *o);

/* For how much of [from_ns, to_ns) somebody was at work. */
u64 lull_others_ns(const struct lull_others *o, u64 from_ns, u64 to_ns);

#endif
