/*
 * witness - was a signal sent to lull alone, or to a whole process group or container?
 *
 * A signal sent to a process group or to all of a container (kill %1, a notebook, a batch system)
 * reaches the program as well as lull; forwarding it would deliver it twice. The Linux kernel does
 * not say which kind it was. So a small child process of lull blocks all signals, and no other
 * program knows its process id: a signal that is pending there, too, was sent to all.
 *
 * Without it (process limit reached) signals are always forwarded.
 */
#ifndef LULL_RECORD_SESSION_WITNESS_H
#define LULL_RECORD_SESSION_WITNESS_H

#include <sys/types.h>

#include "base/types.h"

struct lull_witness {
	pid_t pid; /* 0 if there is none */
	int fd;
	u64 seen; /* what it got and was not asked for: bit n - 1 for signal n */
	u64 owed; /* what it was asked for and did not answer */
	u64 n_asked;
};

/* Fork it; it ends when we do. */
void lull_witness_start(struct lull_witness *w);

/*
 * These signals have come to us, bit n - 1 for signal n: which have come to the witness, too? To be
 * asked of every one, so that nothing old is taken for it. Takes 2 ms, seconds where the machine
 * stands still.
 */
u64 lull_witness_seen(struct lull_witness *w, u64 signals);

/* End it. */
void lull_witness_stop(struct lull_witness *w);

#endif
