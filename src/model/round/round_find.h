/*
 * round_find - the ways to cut a run into rounds, and how well each one explains the run.
 *
 * Every way makes candidates: what the program marks, ranges that repeat, what hooks saw, and what
 * repeats in the calls. lull_loop_judge() measures a candidate; model/rounds.c takes the best one.
 *
 * Content:        a round holds launches, copies and waits, counted by name in BUCKETS numbers. Two
 *                 rounds are of one kind if these numbers agree to 85 % (limits.def), whatever time
 *                 they took.
 * Cost:           one pass over the calls for each candidate; candidates that are only guesses are
 *                 measured on the first LULL_LOOP_LOOK calls.
 */
#ifndef LULL_MODEL_ROUND_ROUND_FIND_H
#define LULL_MODEL_ROUND_ROUND_FIND_H

#include "model/rounds.h"
#include "model/span.h"

#define LULL_LOOP_BUCKETS 32
#define LULL_LOOP_LOOK	  500000
#define LULL_LOOP_CALLS	  8   /* of the model that are kept */
#define LULL_LOOP_NO_ITEM 255 /* in buckets: neither starts work nor waits */

/* One way to cut the run into rounds (a candidate), and how good it is. */
struct lull_loop {
	struct lull_vec marks; /* u64: where rounds begin on the host, sorted */
	u64 last_ns;	       /* end of the last one */
	const char *name;      /* of the range or the call; borrowed, or NULL */
	enum lull_rounds_source source;
	u32 n_grouped; /* launches that were put together, if nothing says where rounds begin */
	/* Filled in by lull_loop_judge(). */
	u8 *kinds;	 /* by round */
	u32 n_kinds;	 /* the last one may be all others */
	u32 n_judged;	 /* rounds that were looked at */
	u32 n;		 /* of them, those that hold something */
	f64 covered;	 /* share of the device's work and of the launches, whichever is less */
	f64 weight;	 /* the same, but what was done before the first round counts little */
	f64 even;	 /* share of what the rounds hold that is in rounds like others */
	f64 usual;	 /* share of the rounds that are of the most frequent kind */
	f64 updated;	 /* share of the rounds that hold an update of the optimizer */
	u64 median_ns;	 /* from mark to mark, or on the device if that takes longer */
	u64 median_size; /* items in a round */
	u32 n_start;	 /* rounds at the start and at the end that are no rounds; see trim */
	u32 n_end;
};

struct lull_loop_finder {
	struct lull_reader *reader;
	const struct lull_chain *chain;
	const struct lull_units *units;
	const struct lull_host *host;
	u32 process;
	u32 without;
	u8 *buckets;	       /* by node; LULL_LOOP_NO_ITEM for nodes that do not count */
	u64 n_launches;	       /* nodes that start work */
	struct lull_vec loops; /* struct lull_loop */
	/* The model, if it is called too few times for rounds; borrowed, or NULL. */
	const char *model;
	struct lull_span calls[LULL_LOOP_CALLS];
	u32 n_calls;
};

/* Prepare to find loops; everything is borrowed until lull_loop_finder_release(). */
void lull_loop_finder_init(struct lull_loop_finder *f, struct lull_reader *r, u32 process,
			   const struct lull_chain *c, const struct lull_units *units,
			   const struct lull_host *h, u32 without);

/* Free it and all loops. */
void lull_loop_finder_release(struct lull_loop_finder *f);

/* A new candidate without marks. Valid until the next one is added. */
struct lull_loop *lull_loop_add(struct lull_loop_finder *f, enum lull_rounds_source source);

/* Remove the last candidate. */
void lull_loop_drop(struct lull_loop_finder *f);

/* Add where a round begins; in any order, lull_loop_judge() sorts. */
void lull_loop_mark(struct lull_loop *l, u64 begin_ns);

/* Measure a candidate; a guess by the first calls only. */
void lull_loop_judge(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess);

/*
 * Rounds of different kinds that follow each other in a fixed order, with no two neighbours alike,
 * are parts of one round: put them together. Judges again if so.
 */
void lull_loop_merge(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess);

/*
 * Take away rounds at both ends that are like no other and far smaller than usual: the start and
 * the end of the program, which happen to have what separates rounds. Judges again if so.
 */
void lull_loop_trim(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess);

/* A candidate from the rows of the table `step` with this source (round_marks.c). */
void lull_loops_from_table(struct lull_loop_finder *f, u8 source);

/* Candidates from ranges, operators and hooks (round_marks.c). */
void lull_loops_from_ranges(struct lull_loop_finder *f);

/* Candidates from what repeats in the calls (round_repeat.c). */
void lull_loops_from_calls(struct lull_loop_finder *f);

#endif
