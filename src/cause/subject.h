/*
 * subject - one process on one device, with everything known about it.
 *
 * What it gives:  units, chain, host, rounds (src/model/), the slices of the long gaps with their
 *                 cause, and where the time of the steady steps went.
 * Ownership:      owns all of it; the reader is borrowed.
 */
#ifndef LULL_CAUSE_SUBJECT_H
#define LULL_CAUSE_SUBJECT_H

#include "base/types.h"
#include "base/vec.h"
#include "cause/giver.h"
#include "cause/handover.h"
#include "model/chain.h"
#include "model/host.h"
#include "model/thread/others.h"
#include "model/rounds.h"
#include "model/span.h"
#include "model/split.h"
#include "model/unit.h"
#include "trace/reader.h"

/* Why a piece of time has no known cause. */
enum lull_blind {
	LULL_BLIND_UNLINKED,   /* the call is not in the recording */
	LULL_BLIND_DEVICE,     /* launched, device empty, still not begun */
	LULL_BLIND_UNRECORDED, /* the thread did something nobody saw */
	LULL_BLIND_STALL,      /* now and then much longer than usual */
	LULL_BLIND_GRAPH,      /* as DEVICE, and the work is of a CUDA graph */
	LULL_N_BLINDS,
};

/* A part of the gap before a call, with one cause. */
struct lull_slice {
	u64 from_ns;
	u64 to_ns;
	u32 node;	/* the call after the gap */
	u32 event;	/* or LULL_NONE */
	u32 stack;	/* of a sample, or 0 */
	u32 longest_ns; /* of the parts it was made of: `event` is that one's */
	u8 cause;
	u8 blind; /* enum lull_blind, where the cause is unknown */
	bool is_seen;
	bool is_mute; /* the thread waits, and nothing says for what */
};

/* A stretch of idle time with one cause, for the page. */
struct lull_interval {
	u64 from_ns;
	u64 to_ns;
	u32 round;
	u32 unit; /* that ended it, or LULL_NONE */
	u8 cause;
};

/* Where the time of a cause was spent. */
struct lull_where {
	u64 ns;
	u64 n;		    /* times: all pieces of one call count once */
	u64 from_ns, to_ns; /* the longest piece */
	u64 stack_ns;	    /* the longest piece with a stack */
	u32 node;	    /* of that one, or LULL_NONE */
	u32 event;
	u32 stack;
	u32 unit;
	u32 last_node, last_event; /* of the piece that was added last */
	u32 round;		   /* of the first piece */
	u32 last_round;		   /* of the last one */
	u32 number;		   /* of the place, as it was found */
	bool recurs;		   /* a piece is of a later round than the next */
	u8 cause;
};

/* The host touched a page of managed memory that was on the device. */
struct lull_fault {
	u64 at_ns;
	u64 n; /* of all of them until then */
};

/* A place was in a round. */
struct lull_visit {
	u32 where; /* lull_where.number */
	u32 round;
};

struct lull_stalls {
	u32 n_gaps, n_calls; /* gaps and calls far longer than usual */
	u64 sum_ns;
	f64 call_share; /* of the host's time, in calls */
	u8 kind;	/* enum lull_stall */
	f64 confidence;
};

struct lull_native_frame;

/* What other ranks tell about this one; all 0 if there are none. */
struct lull_rank_facts {
	u32 n_ranks;
	f64 wait_share;	   /* of its collectives: waiting for the last rank */
	u32 last_rank;	   /* index of the subject the others wait for, or LULL_NONE */
	f64 busiest_share; /* busy share of the busiest rank */
	bool is_pipeline;  /* most of its exposed collectives go between two ranks */
};

#define LULL_SUBJECT_CAUSES 40

/* More than enough for enum lull_place (cause/cause.h). */
#define LULL_SUBJECT_PLACES 8

struct lull_subject {
	struct lull_reader *reader;
	u32 process, device;
	u32 n_cpus;			  /* of the machine; 0 if not known */
	struct lull_native_frame *frames; /* cause/location.h */
	struct lull_units units;
	struct lull_chain chain;
	struct lull_host host;
	struct lull_others others, launching; /* when threads work: that launch nothing; that do */
	struct lull_rounds rounds;
	struct lull_handover handover;
	struct lull_giver giver; /* known once gaps are sliced */
	/* Causes that are asked about pieces at each place (lull_causes_by_place()). */
	u8 by_place[LULL_SUBJECT_PLACES][LULL_SUBJECT_CAUSES + 1];
	u8 *marks;		/* LULL_MARK_... of each node of the chain (cause/marks.h) */
	struct lull_vec slices; /* struct lull_slice by node */
	struct lull_vec faults; /* struct lull_fault by time */
	struct lull_vec lazy;	/* struct lull_span by begin: CUDA loaded or compiled code */
	struct lull_vec moves;	/* struct lull_span by begin: pages of managed memory moved */
	u64 moved_ns;		/* of the steady steps, pages moved or faulted */
	struct lull_stalls stalls;
	struct lull_rank_facts ranks;

	bool is_parking;		  /* much of what goes to pageable memory comes back */
	u64 window_ns;			  /* of all steady steps */
	u64 split_ns[LULL_N_SPLITS];	  /* adds up to window_ns */
	u64 cost_ns[LULL_SUBJECT_CAUSES]; /* adds up to idle, exposed copies and collectives */
	u64 blind_ns[LULL_N_BLINDS];
	u64 class_ns[LULL_N_KERNEL_CLASSES]; /* sums of kernels in the steady steps */
	u64 n_kernels;			     /* in the steady steps */
	u64 peer_ns, collective_ns;	     /* collectives between two ranks, and all */
	u64 unseen_ns[LULL_SUBJECT_CAUSES];  /* of gaps of a cause: nothing was recorded */
	u64 mute_ns[LULL_SUBJECT_CAUSES];    /* the same: the thread waits, nobody knows for what */
	u64 exposed_ns;			     /* latency that a wait before it exposed */
	u64 *step_cost_ns; /* [step][LULL_SUBJECT_CAUSES], NULL if there are too many steps */
	struct lull_vec intervals; /* struct lull_interval by time; short ones may be left out */
	u64 min_interval_ns;	   /* shorter ones are left out */
	struct lull_vec wheres;	   /* struct lull_where, largest first */
	struct lull_vec visits;	   /* struct lull_visit by round */
};

/* Load what `process` did on the device `track`; `without` as in lull_host_init(). */
void lull_subject_init(struct lull_subject *s, struct lull_reader *r, u32 process, u32 track,
		       const u32 *tracks, u32 without);

/*
 * The same work as one step that counts, to be sliced: for recordings without steps. It borrows
 * what was read from `s`, which stays as it is. False if there is no work, or nobody knows who
 * launched it. Free with lull_subject_release_one() in any case.
 */
bool lull_subject_as_one(struct lull_subject *one, const struct lull_subject *s);

/* Free it, but nothing that is borrowed. */
void lull_subject_release_one(struct lull_subject *one);

/* Free it. */
void lull_subject_release(struct lull_subject *s);

/* Whether the process runs Python, as far as the recording knows. */
bool lull_subject_is_python(const struct lull_subject *s);

/* Whether XLA runs what a program of JAX calls: its ranges say so. */
bool lull_subject_is_xla(const struct lull_subject *s);

/* Whether CuPy runs there: its kernels are called so. */
bool lull_subject_is_cupy(const struct lull_subject *s);

/* Whether the process uses PyTorch, as far as the recording knows. */
bool lull_subject_is_torch(const struct lull_subject *s);

/* Whether the device is held up by this cause at this moment. */
bool lull_subject_is_during(const struct lull_subject *s, u8 cause, u64 at_ns);

/* Page faults of the host in managed memory in [from_ns, to_ns). */
u64 lull_subject_faults(const struct lull_subject *s, u64 from_ns, u64 to_ns);

/* For how much of [from_ns, to_ns) pages of managed memory move. */
u64 lull_subject_moves_ns(const struct lull_subject *s, u64 from_ns, u64 to_ns);

/* Cut long gaps of the host into slices, each with its cause; and judge calls. */
void lull_subject_slice(struct lull_subject *s);

/* Give every nanosecond of the steady steps to compute or to a cause. */
void lull_subject_attribute(struct lull_subject *s);

#endif
