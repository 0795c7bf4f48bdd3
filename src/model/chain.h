/*
 * chain - the CUDA calls of the launching threads, as timelines without overlap.
 *
 * Threads that take turns, such as those of the forward and the backward pass, make one chain; a
 * thread whose calls overlap those of others by more than 5 % gets a separate chain. In a chain a
 * call starts after the previous one has ended, so that every point in time is inside one call, or
 * in the gap before the next one.
 *
 * Left out:       calls inside another call (the driver's inside the runtime's), and all calls of
 *                 threads that never launch work.
 * Units:          the units of a call are listed at its node in the order in which they started;
 *                 this also replaces the correlation ids that lull_units_init() left in unit->node.
 * Memory:         40 bytes per call.
 */
#ifndef LULL_MODEL_CHAIN_H
#define LULL_MODEL_CHAIN_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/unit.h"
#include "trace/reader.h"

/* Bits of node.flags. */
#define LULL_NODE_FIRST	  1u  /* first of its chain: what was before it is not known */
#define LULL_NODE_SYNCED  2u  /* a copy; the next call of its thread waits for the device */
#define LULL_NODE_OWNED	  4u  /* belongs to the copy before it: it waits since memory is pageable */
#define LULL_NODE_PAGED	  8u  /* copies from or to pageable memory */
#define LULL_NODE_OUT	  16u /* copies to the host */
#define LULL_NODE_IN	  32u /* copies to the device batch_bytes (limits.def) or more */
#define LULL_NODE_MANAGED 64u /* moves managed memory */
#define LULL_NODE_SAVED	  128u /* copies to the host what is then written to storage, or waits so */

struct lull_node {
	u64 begin_ns;
	u64 end_ns;
	u32 lane;
	u32 name;  /* string id */
	u32 unit;  /* the first it started, or LULL_NONE */
	u32 round; /* step, or LULL_NONE */
	u32 slice; /* what was done in the gap before it: index of the first slice, or LULL_NONE */
	u8 kind;   /* enum lull_call_kind */
	u8 flags;
	u8 chain;
	u8 cause; /* filled in by whoever judges */
};

struct lull_chain {
	struct lull_node *nodes; /* by chain, then time */
	u32 n;
	u32 first[9]; /* where each chain begins, and n after the last */
	u32 n_chains;
	struct lull_map stacks; /* of calls recorded with one, by thread and start */
	u8 *chain_of_lane;	/* chain + 1 by lane id, 0 for threads that start no work */
	u64 n_units_linked;	/* or launched before the first call of the recording */
};

/* Collect the calls of `process` and link `units` to them. */
void lull_chain_init(struct lull_chain *c, struct lull_reader *r, u32 process,
		     struct lull_units *units);

/* Free it. */
void lull_chain_release(struct lull_chain *c);

/*
 * When the gap before this call starts: at the end of the previous call; for the first, at its own
 * start.
 */
static inline u64 lull_chain_gap_ns(const struct lull_chain *c, u32 node)
{
	return c->nodes[node].flags & LULL_NODE_FIRST ? c->nodes[node].begin_ns
						      : c->nodes[node - 1].end_ns;
}

/* The call stack that was recorded with a call, 0 if none was. */
u32 lull_chain_stack(const struct lull_chain *c, u32 node);

/* The first node of the chain whose call ends after at_ns; the end of the chain if none does. */
u32 lull_chain_find(const struct lull_chain *c, u32 chain, u64 at_ns);

#endif
