/*
 * handover - what other threads run in Python for the steps, rather than for themselves.
 *
 * A thread that hands its work over, or takes it from others, waits for them now and then: until
 * there is room in a queue, for the next item, for a result. So does the launching thread if it
 * needs that work. What such threads do has to be done once for each step, by whomever. A thread
 * that was never seen in such a wait may have nothing to do with the steps; nobody knows.
 *
 * What it gives:  how long these threads, and all others that ran Python, worked in the steps.
 * By what:        samples of Python that held the interpreter lock say who runs Python, those in
 *                 waits who hands over; the scheduler's records say for how long, else the samples.
 * Not it:         waits for a lock, for events, for other processes; waits that end by themselves,
 *                 as those of a thread that does something every second.
 * Cost:           one walk over Python's samples; where other threads run Python, also one over the
 *                 scheduler's records and one over the calls of libc.
 */
#ifndef LULL_CAUSE_HANDOVER_H
#define LULL_CAUSE_HANDOVER_H

#include "base/types.h"
#include "model/chain.h"
#include "model/span.h"
#include "trace/reader.h"

enum lull_handover_way {
	LULL_HANDOVER_NONE,  /* nobody was seen in such a wait */
	LULL_HANDOVER_GIVES, /* the thread waits until what it made is taken */
	LULL_HANDOVER_TAKES, /* it waits for something to do */
	LULL_HANDOVER_POOL,  /* the same, in a pool of threads */
	LULL_HANDOVER_ASKED, /* the launching thread waits for it */
};

struct lull_handover {
	u64 shared_ns; /* threads that hand over worked, all together */
	u64 other_ns;  /* so did the others that ran Python */
	u32 n_lanes;   /* threads that hand over */
	u32 lane;      /* of those, the one that worked most; 0 if there is none */
	u8 way;	       /* enum lull_handover_way, of that one */
};

/* Look at the threads of `process` outside of the chain, in the steady steps. */
void lull_handover_init(struct lull_handover *h, struct lull_reader *r, u32 process,
			const struct lull_chain *c, struct lull_span steady, u32 without);

#endif
