/*
 * replay - simulate the steps again, as they were or as a fix would make them.
 *
 * The threads' calls and gaps, the work they launch, streams as queues, waits and blocking copies
 * make a graph; running it gives the end of every unit. Measured delays (launch to start, one unit
 * to the next, end of work to return of the wait) are kept, so that the unchanged graph gives the
 * measured step; where a delay was hidden, the median of the visible ones is used.
 *
 *	lull_replay_init(&p, subject);
 *	p.error				(how far the unchanged graph is off, as a part of the step)
 *	lull_what_if_init(&w, &p, 0);
 *	cause->apply(&w);
 *	step_ns = lull_what_if_run(&w);
 *	lull_what_if_release(&w);
 *
 * Which steps:    as many consecutive steady steps as have LULL_REPLAY_NODES calls; they are
 *                 repeated, since one pass is wrong whenever the host runs ahead.
 * Overhead:       recording slows the host. Results are for the step without it: p.free_ns.
 */
#ifndef LULL_CAUSE_REPLAY_H
#define LULL_CAUSE_REPLAY_H

#include "base/types.h"
#include "base/vec.h"
#include "cause/subject.h"

#define LULL_REPLAY_NODES 200000u

/* Streams of our own, for copies that a fix moves aside. */
#define LULL_REPLAY_SIDES 4

enum lull_replay_wait {
	LULL_REPLAY_RUNS,   /* the call returns by itself */
	LULL_REPLAY_STREAM, /* it waits for a stream */
	LULL_REPLAY_DEVICE, /* it waits for all work */
	LULL_REPLAY_OWN,    /* it waits for the unit it started */
};

/* A call with the gap before it. */
struct lull_replay_node {
	f64 gap_ns;
	f64 call_ns;	 /* of the host itself, without what it waited */
	f64 over_ns;	 /* of the gap: recording */
	f64 return_ns;	 /* from the end of what it waited for */
	f64 sync_ns;	 /* of the gap: in operators that only wait */
	f64 gil_ns;	 /* of a gap without slices: waits for Python's lock */
	f64 alloc_ns;	 /* of the gap: in operators that only allocate */
	f64 after_ns;	 /* from the start of the first thread's last call, if is_after */
	f64 cold_gap_ns; /* of the gap and the call: they take that much less when the thread did */
	f64 cold_call_ns; /* not wait for the lock just before */
	u32 node;
	u32 op, n_ops;
	u32 inside; /* LULL_IN_... at the call */
	u16 stream; /* waited for */
	u16 loop;   /* 1-based iteration of a loop that waits in each; 0 for none */
	u8 wait;    /* enum lull_replay_wait */
	u8 kind;    /* enum lull_call_kind */
	u8 flags;   /* LULL_NODE_... */
	u8 chain;
	bool is_gone;  /* call and units vanish */
	bool starts;   /* first call of a step */
	bool is_after; /* the thread waited for the first one in the gap, as far as is known */
};

/* A unit. */
struct lull_replay_op {
	f64 dur_ns;
	f64 launch_ns; /* from the start of its call, if the stream is free */
	f64 next_ns;   /* from the end of the unit before it in the stream */
	f64 lag_ns;    /* from the end of `after` */
	u32 after;     /* unit of another stream it waited for, or LULL_NONE */
	u32 unit;
	u16 stream;
	bool is_gone;
	bool is_carried; /* the host carries it: a copy of pageable memory */
};

struct lull_replay {
	const struct lull_subject *subject;
	struct lull_vec nodes; /* struct lull_replay_node, by time */
	struct lull_vec ops;   /* struct lull_replay_op */
	u32 first_round, n_rounds;
	f64 measured_ns; /* step of these rounds, as recorded */
	f64 as_is_ns;	 /* replayed */
	f64 free_ns;	 /* replayed without the cost of recording */
	f64 error;	 /* (as_is - measured) / measured */
	f64 hidden_ns;	 /* what recording cost the host while it waited: free_ns keeps it */
	f64 launch_ns;	 /* medians: of launch_ns, */
	f64 next_ns;	 /* of next_ns, */
	f64 call_ns;	 /* and of launching calls */
	f64 host;	 /* factor on the host's time, from lull_replay_calibrate(); else 1 */
	f64 over_ns;	 /* of a launching call: recording */
	f64 warm;	/* of the host's time on the way to launches, what is left without pauses */
	f64 host_part;	/* of the host's time in gaps, what is left without recording */
	f64 clock_part; /* clock over the highest one, 0 if not known */
	f64 link[3];	/* bytes a second by lull_direction, see lull_replay_link_speed() */
};

/* What a fix may change: copies of nodes and ops, and a floor under the step. */
struct lull_what_if {
	const struct lull_replay *replay;
	struct lull_replay_node *nodes;
	u32 n;
	struct lull_replay_op *ops;
	u32 n_ops;
	f64 floor_ns; /* the step cannot be shorter, whatever the graph says */
	bool is_told; /* the floor holds all that moved work still costs, handing it over, too */
	int scenario; /* -1 best case, 0 expected, 1 worst case */
	bool is_raw;  /* keep the cost of recording */
	f64 scale;    /* of the cost of recording that is taken out */
	f64 host;     /* of the host's time that is kept: 1, or as calibrated */
	f64 warm;     /* of its time on the way to launches: 1, or replay->warm */
};

/* Build the graph and run it unchanged. */
void lull_replay_init(struct lull_replay *p, const struct lull_subject *s);

/*
 * Scale the host's time, and copies that it carries, so that the step without the cost of recording
 * is step_ns, which somebody measured without a recorder. Has no effect if the device limits it.
 */
void lull_replay_calibrate(struct lull_replay *p, f64 step_ns);

/*
 * About what a step takes when so much of the first thread's time is gone, without a run: its own
 * time that is left, or the device's, whichever is longer. Copies of pageable memory are left out.
 */
f64 lull_replay_rest_ns(const struct lull_replay *p, f64 without_ns);

/* Free it. */
void lull_replay_release(struct lull_replay *p);

/* A copy to change. */
void lull_what_if_init(struct lull_what_if *w, const struct lull_replay *p, int scenario);

/* Free it. */
void lull_what_if_release(struct lull_what_if *w);

/*
 * To be called when all that a fix changes was changed: where it takes long pauses away, the host
 * comes to its launches with warm caches.
 */
void lull_what_if_warm(struct lull_what_if *w);

/* The step it gives. */
f64 lull_what_if_run(const struct lull_what_if *w);

/*
 * The time that was taken away from host and device, per step: gaps and calls, waits as long as
 * they took, work that is gone, shorter, or moved to another stream. The step cannot lose more.
 */
f64 lull_what_if_removed_ns(const struct lull_what_if *w);

/* How much less the kernels of a step take. */
f64 lull_what_if_fewer_ns(const struct lull_what_if *w);

/* Take the time of the gap before a node that this cause has. */
void lull_what_if_drop_slices(struct lull_what_if *w, u32 node, u8 cause);

/*
 * Take up to `ns` of the gap before a node, of what this cause and the launch path have: the time
 * of other causes stays.
 */
void lull_what_if_drop_path(struct lull_what_if *w, u32 node, u8 cause, f64 ns);

/* How much of the gap before it this cause has. */
f64 lull_what_if_slices_ns(const struct lull_what_if *w, u32 node, u8 cause);

/*
 * Take away results that go to the host, where this cause has work on them before the next launch:
 * that work, the copies and the waits (replay_trip.c). Returns the cause's time in them, of a step.
 */
f64 lull_what_if_drop_trips(struct lull_what_if *w, u8 cause);

/* Take away copies of what the host has made just before, and the cause's work for it. */
void lull_what_if_drop_made(struct lull_what_if *w, u8 cause);

/* Turn a copy from or to pageable memory into an asynchronous one with pinned memory. */
void lull_what_if_pin(struct lull_what_if *w, u32 node);

/* Take away a call, its wait and its units. */
void lull_what_if_remove(struct lull_what_if *w, u32 node);

/* Bytes a second between host and device: the fastest pinned copy, else by the device's name. */
f64 lull_replay_link_speed(const struct lull_subject *s, u8 direction);

#endif
