/*
 * allocs - allocations of a framework's allocator: blocks with their lifetimes, by pool.
 *
 * A pool is the memory of one process on one device, or on the host. A block lives from its
 * allocation to its release. It belongs to the operator that requested it: the innermost one around
 * it, except operators that only allocate for others (aten::empty and similar ones). It also
 * belongs to the line of the program that was running; in the backward pass, to the line of the
 * forward operator.
 *
 * What it gives:  blocks and points in time, sorted; peaks of each pool.
 * Limits:         a release of a block that was allocated before the recording changes the sums of
 *                 its pool, but does not create a block.
 * Memory:         80 bytes per allocation and release, and model/ops.
 */
#ifndef LULL_MODEL_ALLOCS_H
#define LULL_MODEL_ALLOCS_H

#include "base/intern.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/op_pairs.h"
#include "model/op_stacks.h"
#include "model/ops.h"
#include "model/span.h"
#include "trace/reader.h"

#define LULL_ALLOC_HOST UINT32_MAX

/* Who asked; a key, so nothing may be left unset. */
struct lull_alloc_place {
	u32 pool;     /* index */
	u32 op;	      /* string id of the operator, else of the annotation around; 0 for none */
	u32 function; /* string id of the function of the backward pass around, 0 for none */
	u32 frame;    /* line of the program, 0 if not known */
};

struct lull_alloc_block {
	u64 begin_ns;
	u64 end_ns; /* UINT64_MAX if it was not released */
	u64 size_bytes;
	u32 pool; /* index */
	u32 lane;
	u32 node;  /* number in ops of the innermost operator, 0 for none */
	u32 place; /* number in places */
};

/* One allocation or release. */
struct lull_alloc_moment {
	u64 at_ns;
	i64 size_bytes;	     /* negative: released */
	u64 allocated_bytes; /* in use of the pool afterwards */
	u64 reserved_bytes;  /* held by the allocator afterwards */
	u32 pool;	     /* index */
	u32 block;	     /* number (index + 1), 0 for what was not seen */
};

struct lull_alloc_pool {
	u32 process;
	u32 device_id; /* as the process numbers them, LULL_ALLOC_HOST for the host */
	u64 n_allocations, n_releases;	   /* in the window */
	u64 before_bytes;		   /* in use before the first event of the recording */
	u64 peak_bytes, peak_ns;	   /* the most in use in the window, and when first */
	u64 peak_reserved_bytes;	   /* held at that moment */
	u64 max_reserved_bytes;		   /* the most held in the window */
	u64 end_bytes, end_reserved_bytes; /* at the end of the window */
};

struct lull_allocs {
	struct lull_reader *reader; /* borrowed */
	struct lull_span window;
	struct lull_vec pools;	   /* struct lull_alloc_pool */
	struct lull_vec blocks;	   /* struct lull_alloc_block by begin */
	struct lull_vec moments;   /* struct lull_alloc_moment by time, from the beginning */
	struct lull_intern places; /* struct lull_alloc_place */
	struct lull_ops ops;
	struct lull_op_pairs pairs;
	struct lull_op_stacks stacks;
};

/* Collect what happened up to the end of `window`; peaks and counts are those inside it. */
void lull_allocs_init(struct lull_allocs *a, struct lull_reader *r, struct lull_span window);

/* Free it. */
void lull_allocs_release(struct lull_allocs *a);

/* Indices of the pools, the fullest at its peak first. Free with free(). */
u32 *lull_allocs_by_peak(const struct lull_allocs *a);

/* The place of a block. */
static inline const struct lull_alloc_place *lull_alloc_place(const struct lull_allocs *a,
							      const struct lull_alloc_block *b)
{
	return lull_intern_get(&a->places, b->place);
}

/* Append "AddmmBackward0/aten::mm": the operator of a place, after the backward function. */
void lull_alloc_name(struct lull_str *to, struct lull_reader *r,
		     const struct lull_alloc_place *place);

/* The device of a pool by row id, 0 for the host and where it is not known. */
u32 lull_alloc_device(struct lull_reader *r, const struct lull_alloc_pool *pool);

#endif
