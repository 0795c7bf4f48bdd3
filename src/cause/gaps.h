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

/* Bits of `inside` that samples vote on. */
#define LULL_GAP_BITS 17
extern const u32 lull_gap_bits[LULL_GAP_BITS];

struct lull_gap {
	u32 node;
	u32 place; /* index into places */
	u64 gap_ns;
	u64 stall_ns;	   /* of it, beyond what is usual */
	u64 call_stall_ns; /* of the call after it */
};

/* The function that most of some samples are in. */
struct lull_gap_function {
	u64 function; /* lull_location_function(), 0 if there is none */
	u32 n;	      /* private: by how many it leads */
};

/* What samples at a place say. */
struct lull_gap_votes {
	u32 n;
	u32 n_in[LULL_GAP_BITS]; /* by lull_gap_bits[] */
	u32 stack;		 /* one in the most frequent function and line, 0 if none */
	u64 function;		 /* private: which one that is */
	u32 frame;		 /* private: the line */
	u32 n_stack, n_frame;	 /* private */
	bool has_run;		 /* private: samples on a CPU; those without are not asked then */
	struct lull_gap_function writing, between; /* in calls that write; in no call */
};

struct lull_gap_place {
	u32 n; /* steps in which the gap is long */
	struct lull_gap_votes python, native;
	u32 n_waits;   /* samples of Python in calls that wait for another thread */
	u32 n_locks;   /* of those, in a lock that code of the program takes itself */
	u64 gap_ns;    /* of all long gaps here */
	u64 others_ns; /* of that, other threads are at work */
};

struct lull_gaps {
	struct lull_vec all;	/* struct lull_gap by node */
	struct lull_vec places; /* struct lull_gap_place */
};

/* Find the long gaps; fills s->stalls. */
void lull_gaps_init(struct lull_gaps *g, struct lull_subject *s);

/* Bits that more than half of the samples at the place have. */
u32 lull_gap_voted(const struct lull_gap_place *p);

/*
 * Whether such a wait here is for a lock. Queues, conditions and events of Python are made of
 * locks, too, but the function that waits is of its library then.
 */
bool lull_gap_waits_for_lock(const struct lull_gap_place *p);

/*
 * Whether the function that writes is the one that works when nothing is written: it makes what it
 * writes.
 */
bool lull_gap_fills(const struct lull_gap_place *p);

/* A stack in the function of the program that most samples at the place are in, or 0. */
u32 lull_gap_stack(const struct lull_gap_place *p);

/* Free them. */
void lull_gaps_release(struct lull_gaps *g);

#endif
