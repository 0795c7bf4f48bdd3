/*
 * ops - the operators of a framework as a tree, with the cost of each on the CPU and on devices.
 *
 * The tree is the one PyTorch's profiler builds: operators, the program's annotations around them,
 * and the CUDA calls inside them, by thread. One is inside another if it starts and ends in it. A
 * kernel or copy belongs to the innermost operator or annotation around the call that launched it.
 *
 * Two rules are PyTorch's, so that numbers are the same as in its tables: an operator whose only
 * child has the same name is merged with it; and a few operators that the profiler itself causes
 * are left out (their time counts for their parent).
 *
 * Memory:         120 bytes for each operator, annotation and call in the window.
 */
#ifndef LULL_MODEL_OPS_H
#define LULL_MODEL_OPS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

enum lull_op_kind {
	LULL_OP_OPERATOR,
	LULL_OP_ANNOTATION,
	LULL_OP_CALL,
};

/* Memory that the framework's allocator gave out: negative if more was released. */
enum lull_op_memory { LULL_OP_HOST, LULL_OP_DEVICE, LULL_N_OP_MEMORY };

struct lull_op_node {
	u64 start_ns;
	u64 end_ns;
	u64 child_ns;			   /* of those directly inside */
	u64 device_ns;			   /* of kernels and copies it started itself */
	u64 device_all_ns;		   /* and those inside it */
	i64 bytes[LULL_N_OP_MEMORY];	   /* while it ran, on any thread */
	i64 child_bytes[LULL_N_OP_MEMORY]; /* of those directly inside */
	i64 sequence;			   /* of an operator, -1 if none: see model/op_pairs.h */
	u64 forward_tid;
	u32 parent; /* index + 1, 0 for none; always a smaller one */
	u32 lane;
	u32 name;  /* string id */
	u32 label; /* op_label of an operator, else 0 */
	u32 n_children;
	u8 kind;	  /* enum lull_op_kind */
	bool is_backward; /* a function of the backward pass */
	bool is_gone;	  /* one with its parent */
};

struct lull_ops {
	struct lull_vec nodes; /* struct lull_op_node by lane, then start */
	u64 n_loose;	       /* allocations and releases while none of them ran */
	i64 loose_bytes[LULL_N_OP_MEMORY];
	u64 n_unlinked; /* kernels and copies whose call was not recorded, or is in none */
	u64 unlinked_ns;
};

/* What is wanted of it. */
enum lull_ops_depth {
	LULL_OPS_WITH_COSTS,
	LULL_OPS_BARE, /* the tree alone: no calls of CUDA, no work, no memory */
};

/* Build the tree of what lies in `window`. */
void lull_ops_init(struct lull_ops *ops, struct lull_reader *r, struct lull_span window,
		   enum lull_ops_depth depth);

/*
 * The number (index + 1) of the innermost operator or annotation that ran on this thread at this
 * moment, 0 for none.
 */
u32 lull_ops_at(const struct lull_ops *ops, u32 lane, u64 at_ns);

/* Free it. */
void lull_ops_release(struct lull_ops *ops);

#endif
