/*
 * gaps - the long gaps between calls: which recur, which are stalls, what samples say about them.
 *
 * A gap is identified by its position: the call after it, the work that this call launches, and the
 * 1-based index of such a call in its step. The same position in other steps says how long the gap
 * usually takes; sparse samples of all steps together say what runs there.
 */
#ifndef LULL_CAUSE_GAPS_H
#define LULL_CAUSE_GAPS_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/subject.h"

struct lull_gap {
	u32 node;
	u32 place; /* index into places */
	u64 gap_ns;
	u64 stall_ns;	   /* of it, beyond what is usual */
	u64 call_stall_ns; /* of the call after it */
};

struct lull_gap_place {
	u32 n;	       /* steps in which the gap is long */
	u32 n_samples; /* that hit it; those of Python alone, if there are any */
	bool is_python;
	u32 n_loader, n_storage, n_framework, n_compile, n_idle;
	u32 stack;    /* one in the most frequent function of the program, 0 if none */
	u64 function; /* private: which one that is */
	u32 n_stack;  /* private */
};

struct lull_gaps {
	struct lull_vec all;	/* struct lull_gap by node */
	struct lull_vec places; /* struct lull_gap_place */
};

/* Find the long gaps; fills s->stalls. */
void lull_gaps_init(struct lull_gaps *g, struct lull_subject *s);

/* Free them. */
void lull_gaps_release(struct lull_gaps *g);

#endif
