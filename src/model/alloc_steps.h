/*
 * alloc_steps - memory of a framework by step of the program's loop.
 *
 * Steps are those of all reports (lull_steps_init_any()): marked by the program, or found. The
 * steps of a process are those of its thread that has most of them.
 */
#ifndef LULL_MODEL_ALLOC_STEPS_H
#define LULL_MODEL_ALLOC_STEPS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/allocs.h"
#include "model/step.h"

/* One pool in one step. */
struct lull_alloc_step {
	u64 number; /* as the program counts; from 0 if it does not */
	u64 start_ns, end_ns;
	u32 pool;		 /* index */
	u64 begin_bytes;	 /* in use at its start */
	u64 peak_bytes;		 /* the most in use in it */
	u64 end_bytes;		 /* in use at its end */
	u64 reserved_bytes;	 /* held at its end */
	u64 peak_reserved_bytes; /* held when it was fullest */
	u64 n_allocations;
	u64 left_bytes; /* allocated in it, in use when the window ended; a whole step came after */
};

struct lull_alloc_steps {
	struct lull_steps steps;
	struct lull_vec all; /* struct lull_alloc_step by pool, then start */
	u32 *first_ix;	     /* private: by pool, where its steps begin; one more than pools */
};

/* Follow the pools through the steps that lie in the window of `a`. */
void lull_alloc_steps_init(struct lull_alloc_steps *s, const struct lull_allocs *a);

/* Free it. */
void lull_alloc_steps_release(struct lull_alloc_steps *s);

/*
 * The step in which a block was left behind: index + 1 in `all` of the step it was allocated in, if
 * it was still in use at the end of the window and a whole step came after; else 0.
 */
u32 lull_alloc_left_in(const struct lull_alloc_steps *s, const struct lull_alloc_block *block);

#endif
