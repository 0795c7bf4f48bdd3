/*
 * op_pairs - which forward operator each function of the backward pass belongs to.
 *
 * A forward operator that is recorded for the backward pass takes a sequence number, counted per
 * thread. The function that computes its gradient has the same number and the forward thread. Other
 * operators have the next number too, without taking it: of those with the same number, the last to
 * start before the backward function is the right one, which is PyTorch's own rule.
 *
 * Threads:        our own recordings have the id of the forward thread. PyTorch's traces have a
 *                 number that occurs nowhere else; it is taken for the thread whose operators have
 *                 most of the sequence numbers that occur with it.
 * Memory:         32 bytes for each operator with a number.
 */
#ifndef LULL_MODEL_OP_PAIRS_H
#define LULL_MODEL_OP_PAIRS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/ops.h"
#include "trace/reader.h"

/* Numbers (index + 1) of nodes. The backward one is the outermost of its number. */
struct lull_op_pair {
	u32 forward;
	u32 backward;
};

struct lull_op_pairs {
	struct lull_vec all; /* struct lull_op_pair, by backward */
	u64 n_unpaired;	     /* backward functions whose forward operator was not found */
};

/* Find them all. */
void lull_op_pairs_init(struct lull_op_pairs *p, const struct lull_ops *ops, struct lull_reader *r);

/* Free them. */
void lull_op_pairs_release(struct lull_op_pairs *p);

/*
 * The function of the backward pass, of those with a forward operator, that a node runs in, or that
 * the engine of the framework called beside it; a number in ops, 0 for none.
 */
u32 lull_op_pairs_backward(const struct lull_op_pairs *p, const struct lull_ops *ops, u32 number);

/* The forward operator of that function, 0 if there is none. */
u32 lull_op_pairs_forward(const struct lull_op_pairs *p, const struct lull_ops *ops, u32 number);

/* A name of a backward function without what PyTorch's engine puts in front of it. */
const char *lull_op_plain_name(const char *name);

#endif
