/*
 * host - what the launching threads were doing, innermost first.
 *
 * Ranges, operators, Python calls and C library calls of a thread are one nesting; at every point
 * in time the innermost one says what the thread did, and `inside` which one contains it. Waits for
 * Python's lock and preemption are independent of that nesting and are kept separately.
 *
 * What it gives:  events by thread and start, with parents; leaves: the timeline of a thread, cut
 *                 where the innermost event changes; waits; samples.
 * Memory:         48 bytes per event and 16 per leaf; only threads of a chain are read.
 */
#ifndef LULL_MODEL_HOST_H
#define LULL_MODEL_HOST_H

#include "base/types.h"
#include "base/vec.h"
#include "model/chain.h"
#include "trace/reader.h"

enum lull_host_kind {
	LULL_HOST_RANGE,  /* ref: label */
	LULL_HOST_OP,	  /* ref: op_label */
	LULL_HOST_PYCALL, /* ref: frame */
	LULL_HOST_OSCALL, /* ref: string */
};

struct lull_host_event {
	u64 begin_ns;
	u64 end_ns;
	u32 lane;
	u32 ref;
	u32 stack;  /* of an outermost operator or a long call; else 0 */
	u32 parent; /* index, or LULL_NONE */
	u32 inside; /* LULL_IN_... of it and of all around it */
	u16 n_calls, n_launches, n_syncs, n_allocs; /* inside it, at most 65535 */
	u8 kind;				    /* enum lull_host_kind */
	u8 is_hook;				    /* a range of our hooks, not of the program */
};

struct lull_leaf {
	u64 begin_ns; /* it ends where the next one of the thread begins */
	u32 event;    /* or LULL_NONE */
	u32 lane;
};

enum lull_host_wait {
	LULL_HOST_GIL,	     /* waits for Python's lock */
	LULL_HOST_PREEMPTED, /* wants a CPU and has none */
	LULL_HOST_BLOCKED,   /* left the CPU by itself */
};

struct lull_host_pause {
	u64 begin_ns;
	u64 end_ns;
	u32 lane;
	u32 stack; /* of a GIL wait, if known */
	u8 kind;   /* enum lull_host_wait */
};

struct lull_host_sample {
	u64 at_ns;
	u32 lane;
	u32 stack;
	u32 weight_ns; /* CPU time it stands for; 0 for Python's */
	u8 is_python;
	u8 is_idle;
};

/* Sources that may be left out, to see what would be said without them. */
#define LULL_WITHOUT_RANGES  1u
#define LULL_WITHOUT_OPS     2u
#define LULL_WITHOUT_PYTHON  4u /* calls and samples of Python */
#define LULL_WITHOUT_OSRT    8u
#define LULL_WITHOUT_GIL     16u
#define LULL_WITHOUT_SCHED   32u
#define LULL_WITHOUT_SAMPLES 64u
#define LULL_WITHOUT_CALLS   128u /* of CUDA */
#define LULL_WITHOUT_STEPS   256u

struct lull_host {
	struct lull_vec events;	  /* struct lull_host_event by lane, then begin, outer first */
	struct lull_vec leaves;	  /* struct lull_leaf by lane, then begin */
	struct lull_vec pauses;	  /* struct lull_host_pause by lane, then begin */
	struct lull_vec samples;  /* struct lull_host_sample by lane, then time */
	size_t *near;		  /* where the last question about leaves ended */
	u64 ran_ns, preempted_ns; /* of all these threads together: on a CPU, and wanting one */
	bool has_sched, has_gil, has_samples, has_ops, has_os;
	bool is_server; /* the process accepts connections */
};

/* Collect what the threads of the chain did; `without` are bits of LULL_WITHOUT_... */
void lull_host_init(struct lull_host *h, struct lull_reader *r, const struct lull_chain *c,
		    u32 without);

/* Free it. */
void lull_host_release(struct lull_host *h);

/* The index of the leaf of `lane` that holds at_ns, or LULL_NONE. */
u32 lull_host_leaf(const struct lull_host *h, u32 lane, u64 at_ns);

/* When the next leaf of `lane` after that time starts; UINT64_MAX if there is none. */
u64 lull_host_next_ns(const struct lull_host *h, u32 lane, u64 at_ns);

/* The innermost event at this moment, or LULL_NONE. */
u32 lull_host_at(const struct lull_host *h, u32 lane, u64 at_ns);

/* The first pause of `lane` that ends after at_ns; the number of pauses if there is none. */
size_t lull_host_pause_at(const struct lull_host *h, u32 lane, u64 at_ns);

/* The first sample of `lane` at or after at_ns. */
size_t lull_host_sample_at(const struct lull_host *h, u32 lane, u64 at_ns);

/* The name of an event, as its table has it. Borrowed. */
const char *lull_host_name(const struct lull_host_event *e, struct lull_reader *r);

#endif
