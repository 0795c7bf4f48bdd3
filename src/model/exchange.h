/*
 * exchange - data exchanges of a rank with others, with timestamps of the device and a key that is
 * the same on all ranks.
 *
 * The table `collective` says what was requested, and when a thread enqueued it; the kernels of
 * NCCL say when it ran. This joins both. In order of preference an exchange is
 *	a row of an imported trace	which has the device's timestamps itself,
 *	a row of the profiler plugin	with the communicator's own count,
 *	a row of a marked call		counted by communicator,
 *	a kernel alone			counted by name; sizes and communicators are not known.
 *
 * Pairing:        if there are as many operations as kernels: by order. Otherwise each operation
 *                 belongs to the next kernel launched by its process, so that a group is one
 *                 exchange.
 * The key:        communicator, operation and its count; for a send and its receive: communicator,
 *                 both ends and their count. If NCCL does not count itself, the recordings of all
 *                 ranks have to start with the same step.
 * Memory:         80 bytes per exchange, and temporarily 40 bytes per NCCL kernel.
 */
#ifndef LULL_MODEL_EXCHANGE_H
#define LULL_MODEL_EXCHANGE_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

struct lull_exchange {
	u64 key;
	u64 lot; /* the same for 64 that follow each other, and on all ranks: to take whole steps */
	u64 start_ns, end_ns; /* on the device */
	u64 comm;
	u64 size_bytes; /* the larger of what this rank gave and got; 0 if not known */
	u32 name;	/* string id: AllReduce */
	u32 comm_name;
	u32 n_ranks;  /* of the communicator, 0 if not known */
	u32 rank;     /* in it */
	i64 peer;     /* or root, -1 for none */
	bool is_peer; /* a send or a receive */
	bool is_send;
};

struct lull_exchanges {
	struct lull_vec all; /* struct lull_exchange by start */
	bool is_counted;     /* keys were counted from the first row on */
	u64 n_unpaired;	     /* operations without a kernel */
};

/* Collect them. */
void lull_exchanges_init(struct lull_exchanges *x, struct lull_reader *r);

/* Free them. */
void lull_exchanges_release(struct lull_exchanges *x);

/* The exchange that a kernel with these times is, or NULL. */
const struct lull_exchange *lull_exchanges_find(const struct lull_exchanges *x, u64 start_ns,
						u64 end_ns);

#endif
