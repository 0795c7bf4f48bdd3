/*
 * cause - why a device waits: what each cause claims, how its fix changes a step, its texts.
 *
 * The engine cuts the time in which a device computes nothing into pieces with one description each
 * (struct lull_claim) and asks the causes in the order of causes.def; the first that claims a piece
 * gets it. So every nanosecond has one cause, and the costs add up.
 *
 * A cause is one file: everything specific to it is a field or a function of its struct lull_cause.
 * The engine, the job, the commands and the page use properties and name no cause.
 *
 * To add one, change two places: copy cause_storage_write.c to cause_X.c, whose head says what the
 * signal is and what it is not; add CAUSE(X) to causes.def, at its place in the order. Then add
 * three goldens in test/golden/cause/ (fires, nearly, must not), and run `tools/gen-docs
 * build/lull` for lull-causes(7).
 */
#ifndef LULL_CAUSE_CAUSE_H
#define LULL_CAUSE_CAUSE_H

#include "base/types.h"
#include "cause/subject.h"

struct lull_finding; /* cause/why.h */
struct lull_what_if; /* cause/replay/replay.h */
struct lull_why;     /* cause/why.h */

/* Sources of a recording that a cause cannot do without. */
#define LULL_NEED_WORK	     1u	   /* kernels and copies */
#define LULL_NEED_CALLS	     2u	   /* CUDA calls */
#define LULL_NEED_HOST	     4u	   /* ranges, operators, Python calls, samples or calls of libc */
#define LULL_NEED_GIL	     8u	   /* waits for Python's lock, or operators to judge by */
#define LULL_NEED_SCHED	     16u   /* when threads had a CPU */
#define LULL_NEED_RANKS	     32u   /* the other ranks of the job */
#define LULL_NEED_COUNTERS   64u   /* clocks, power */
#define LULL_NEED_COLLECTIVE 128u  /* kernels of collectives */
#define LULL_NEED_GRAPHS     512u  /* each kernel of CUDA graphs */
#define LULL_NEED_TRIAL	     1024u /* the fix itself, made and measured: no recording tells more */
#define LULL_NEED_OS	     256u  /* calls of the C library: what a thread waits in */

/* Where a piece of time lies. */
enum lull_place {
	LULL_PLACE_COPY,       /* a copy runs, and nothing else: `unit` */
	LULL_PLACE_COLLECTIVE, /* a collective runs, and nothing else: `unit` */
	LULL_PLACE_CALL,       /* the thread is inside the call `node` */
	LULL_PLACE_GAP,	       /* the thread is between calls; `node` is the next one */
	LULL_PLACE_LATENCY,    /* the call `node` was made, its work has not begun */
	LULL_PLACE_DEVICE,     /* the work was launched before; the device did not begin it */
	LULL_PLACE_UNLINKED,   /* nobody knows who launched the work */
	LULL_PLACE_LOST,       /* in the call `node`: nothing to wait for, and no CPU */
};

/* The bit of a place. */
#define LULL_AT(place) (1u << LULL_PLACE_##place)

enum lull_stall {
	LULL_STALL_NONE,
	LULL_STALL_GIL,
	LULL_STALL_OS,
	LULL_STALL_UNKNOWN,
};

/* No pause; else enum lull_host_wait. */
#define LULL_NO_PAUSE 255

struct lull_claim {
	const struct lull_subject *subject;
	enum lull_place place;
	u64 from_ns, to_ns;
	u32 unit;    /* the copy or collective; else the work that ended the idle time; LULL_NONE */
	u32 node;    /* see enum lull_place; LULL_NONE */
	u32 event;   /* the innermost thing the thread was in, or LULL_NONE */
	u32 inside;  /* LULL_IN_...: what that is part of */
	u64 gap_ns;  /* GAP: its whole length */
	u8 pause;    /* GAP, CALL: enum lull_host_wait or LULL_NO_PAUSE */
	u8 stall;    /* GAP, CALL: enum lull_stall */
	bool is_own; /* GAP: time of the program itself, not of the framework around launches */
	bool is_seen;	/* GAP: something was recorded there */
	bool is_told;	/* GAP: a call or a wait was recorded there */
	bool is_mute;	/* GAP: the thread waits, and nothing says for what */
	bool recurs;	/* GAP: the same gap is there in other steps too */
	bool is_moving; /* GAP, LATENCY, DEVICE: pages of managed memory move meanwhile */
	bool is_lazy;	/* CALL, LATENCY: CUDA loads or compiles code meanwhile */
	bool is_late;	/* COLLECTIVE: the part that waits for the last rank */
	bool leads_in;	/* GAP: the next thing that the thread does is to copy a batch in */
	bool came_out;	/* GAP: in the step before it, that much data was copied to the host */
	bool answers;	/* GAP: a result of the device came to the host right before it */
	u8 marks;	/* CALL, GAP, COPY, LATENCY: LULL_MARK_... of the node */
};

enum lull_cause_kind {
	LULL_CAUSE_SPECIFIC, /* has a fix of its own, which comes before all others */
	LULL_CAUSE_RESIDUE,  /* what is left when no specific one holds */
	LULL_CAUSE_BLIND,    /* cannot be told */
	LULL_CAUSE_BUSY,     /* the device is not idle */
};

/* Its colour on the page. */
enum lull_family {
	LULL_FAMILY_OTHER,
	LULL_FAMILY_DATA,   /* loading and storing */
	LULL_FAMILY_COPY,   /* copies of any kind */
	LULL_FAMILY_WAIT,   /* the host waits for the device */
	LULL_FAMILY_LAUNCH, /* the way of a launch */
	LULL_FAMILY_HOST,   /* what else the host does */
	LULL_FAMILY_RANKS,  /* other ranks */
	LULL_FAMILY_DEVICE, /* the device itself */
	LULL_N_FAMILIES,
};

/* What it is among the ranks of a job, which are looked at together (src/job/). */
enum lull_among_ranks {
	LULL_RANKS_NOTHING,  /* a rank has it by itself */
	LULL_RANKS_LATE,     /* others wait for a late rank */
	LULL_RANKS_STAGE,    /* stages wait for a busier one */
	LULL_RANKS_EXCHANGE, /* they exchange data; predictions for one rank end there */
};

/* How its places in the program are distinguished. */
enum lull_places {
	LULL_PLACES_BY_FUNCTION, /* by named range, Python function, or call */
	LULL_PLACES_BY_RANGE,	 /* by named range alone */
	LULL_PLACES_NONE,	 /* it has none */
};

/* What is said about a fix, for one program on one machine. */
#define LULL_ADVICE_BYTES 400
struct lull_advice {
	char fix[LULL_ADVICE_BYTES]; /* one thing to try */
	char assumes[160];	     /* what the prediction takes for granted; "" if nothing */
};

struct lull_cause {
	const char *id;		   /* for ever: scripts quote it */
	const char *title;	   /* a phrase */
	const char *because;	   /* ends the sentence "The GPU does not compute ... because" */
	const char *because_waits; /* the same if the thread waits, unknown for what; or NULL */
	const char *because_once;  /* the same where no steps are known; NULL: no other words */
	const char *why; /* for lull-causes(7): mechanism, thresholds and their origin, limits */
	const char *fix; /* one thing to try, in any program */
	const char *fix_torch; /* the same in a program that uses PyTorch; NULL: no other words */
	const char *fix_more;  /* if it waits for others: prove() takes it; NULL: as above */
	const char *fix_more_torch; /* the same in a program that uses PyTorch */
	const char *assumes;	    /* what the prediction takes for granted; NULL if nothing */
	const char *nowhere; /* what is said where no place is known; NULL: that nothing is */
	enum lull_cause_kind kind;
	enum lull_family family;
	enum lull_among_ranks ranks;
	enum lull_places places;
	bool is_default;    /* takes what no other cause of its kind takes: one of each kind */
	bool is_ceiling;    /* the prediction is the best that can come of it */
	bool moves;	    /* its fix has the work done elsewhere, at a speed that nobody saw */
	bool is_pause;	    /* the device's own: it counts as busy, and is no answer */
	bool names_unit;    /* where no place is known, the kernel is the place */
	bool owns_copies;   /* data copied to the host just before is copied for it */
	bool exposes;	    /* launches that come late since it drained the device are its own */
	bool is_captured;   /* its time may go when launches are captured: these may come first */
	bool slows_kernels; /* it makes kernels of one rank longer than those of others */
	u32 needs;	    /* LULL_NEED_... */

	/* LULL_AT(...): claim() is asked about pieces at these places; 0: at all of them. */
	u32 claims_at;

	/* Whether this piece is mine. NULL: never. */
	bool (*claim)(const struct lull_claim *c);

	/*
	 * Where the device is busy: how much of each step it has if that is what makes the step
	 * long, in ns; else 0. The first that says so comes first. NULL: never.
	 */
	f64 (*busy)(struct lull_why *why);

	/* How far it is to be trusted here: a factor on the confidence. NULL: 1. */
	f64 (*trust)(const struct lull_subject *s);

	/* Whether it is mostly guessed here, so that it takes a larger gain. NULL: no. */
	bool (*is_guess)(const struct lull_subject *s);

	/* The table whose rows show its places. NULL, or if it gives NULL: that of the place. */
	const char *(*table)(const struct lull_subject *s);

	/* Add what proves it beside its places (cause/evidence.h). NULL: nothing more. */
	void (*prove)(struct lull_why *why, struct lull_finding *f);

	/* Fit the advice, which holds the words above, to the machine. NULL: it fits all. */
	void (*suit)(const struct lull_why *why, bool is_torch, struct lull_advice *advice);

	/* Change the step as the fix would. NULL: no prediction. */
	void (*apply)(struct lull_what_if *w);
};

enum lull_cause_ix {
#define CAUSE(name) LULL_CAUSE_IX_##name,
#include "cause/causes.def"
#undef CAUSE
	LULL_N_CAUSES,
};

/* All of causes.def, in its order. */
extern const struct lull_cause *const lull_causes[LULL_N_CAUSES];

/* The index of the cause with this id, or -1; then *nearest is the closest id, or NULL. */
int lull_cause_find(const char *id, const char **nearest);

/* The cause of this kind that takes what the others leave. */
enum lull_cause_ix lull_cause_default(enum lull_cause_kind kind);

/* The cause that is this among ranks. */
enum lull_cause_ix lull_cause_among_ranks(enum lull_among_ranks ranks);

/*
 * Fill the lists of causes that may claim pieces at each place, in their order; LULL_N_CAUSES ends
 * a list.
 */
void lull_causes_by_place(u8 by_place[LULL_SUBJECT_PLACES][LULL_SUBJECT_CAUSES + 1]);

/* The first cause that claims the piece. Asked for millions of them: it uses the lists. */
enum lull_cause_ix lull_cause_of(const struct lull_claim *c);

/*
 * Whether it is a piece of a long gap in which the thread neither waits for Python's lock or a CPU
 * nor loads or stores data, as far as names tell.
 */
bool lull_claim_is_other(const struct lull_claim *c);

/* The pageable or pinned copy of a COPY piece. */
const struct lull_copy *lull_claim_copy(const struct lull_claim *c);

/*
 * Whether the call copies so much to ordinary memory of the host that the copy itself takes the
 * time, in a program that gets such data back: nobody waits for a result.
 */
bool lull_call_copies_out(const struct lull_subject *s, u32 node);

/* The call of a CALL, GAP or LATENCY piece, or NULL. */
const struct lull_node *lull_claim_node(const struct lull_claim *c);

#endif
