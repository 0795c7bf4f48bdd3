/*
 * callpath - samples summed by function: the function itself, and including its callees.
 *
 *	lull_callpath_init(&c, reader);
 *	lull_callpath_add(&c, stack, weight);		(each sample)
 *	lull_callpath_finish(&c);
 *	c.functions					(struct lull_function, largest self first)
 *	lull_callpath_release(&c);
 *
 * What counts:    self is the weight of the samples in which the function was innermost; total of
 *                 those in which it was anywhere on the stack, once for each stack, so that
 *                 recursion does not count twice.
 * Identity:       native functions by name and module, Python functions by name and file; all
 *                 places of a module without a name are one, others are so by address.
 * Cost:           O(samples + stack nodes * depth); memory is 24 bytes per stack node.
 */
#ifndef LULL_MODEL_CALLPATH_H
#define LULL_MODEL_CALLPATH_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

/* frame.kind */
enum lull_frame_kind {
	LULL_FRAME_NATIVE = 1,
	LULL_FRAME_PYTHON = 2,
	LULL_FRAME_KERNEL = 3,
	LULL_FRAME_JIT = 4,
	LULL_FRAME_INLINED = 5,
};

struct lull_function {
	u32 frame; /* the place in it where most of its weight is; 0 for samples without a stack */
	u64 self;
	u64 total;
	u64 n_self; /* samples in which it was innermost */
};

struct lull_callpath {
	struct lull_reader *reader;
	const struct lull_stack_row *stacks;
	size_t n_stacks;
	u64 *weights;		   /* private: by stack node */
	u64 *counts;		   /* private: samples by stack node */
	u64 all;		   /* weight of all samples */
	struct lull_vec functions; /* struct lull_function */
};

/* Nothing counted yet. */
void lull_callpath_init(struct lull_callpath *c, struct lull_reader *r);

/* Free everything. */
void lull_callpath_release(struct lull_callpath *c);

/* Count a sample whose innermost node is `stack`, 0 if it has none. */
void lull_callpath_add(struct lull_callpath *c, u32 stack, u64 weight);

/* Fill c->functions with those that were met, largest self first, then largest total. */
void lull_callpath_finish(struct lull_callpath *c);

#endif
