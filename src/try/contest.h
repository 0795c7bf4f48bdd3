/*
 * contest - whose turn it is to run, and which side is faster.
 *
 * Side 0 is what the others are compared with. All sides run by turns, so that a machine that
 * becomes slower meets all of them. Rules:
 *
 *  1. Each round starts with side 0; the others follow, one place further in each round.
 *  2. A side that cannot run, or is not faster after two rounds, is out; one whose runs are long,
 *     also if it is far slower in the first. Where the time is short, one round decides, and the
 *     fastest follow first.
 *  3. A side that is twice as fast in each of two rounds has gained, and is done, unless side 0 has
 *     ever been faster than that: others may have used the machine just then.
 *  4. Sides are judged after n_runs rounds. Where noise hides what looks like a gain, there are as
 *     many rounds again.
 *  5. Runs are compared, not steps (compare/decide.h): all steps of a run share its luck.
 *  6. A gain has to stand out of the noise of all sides, not only of the two: where half of all
 *     runs are slow, all four of one side may be.
 *
 * False gains: LULL_CONTEST_ALPHA for all sides and both judgements together (test_contest).
 */
#ifndef LULL_TRY_CONTEST_H
#define LULL_TRY_CONTEST_H

#include "base/types.h"
#include "base/vec.h"
#include "compare/decide.h"

/* Chance that a contest in which nothing gains finds a gain. */
#define LULL_CONTEST_ALPHA 0.02

/* A gain below half of this is not worth a change of the program. */
#define LULL_CONTEST_LEAST 0.03

enum lull_gain_verdict {
	LULL_GAIN_UNKNOWN, /* too few runs */
	LULL_GAIN_YES,
	LULL_GAIN_NONE,
	LULL_GAIN_SLOWER,
	LULL_GAIN_HIDDEN, /* noise hides it */
};

struct lull_gain {
	enum lull_gain_verdict verdict;
	f64 ratio;     /* times as fast; 0 if not known */
	f64 low, high; /* 90 % interval */
};

struct lull_side {
	struct lull_samples samples; /* ns a step */
	u32 n_runs;
	bool is_out;	       /* it needs no more runs */
	bool is_long;	       /* its runs take so long that luck is no large part of them */
	struct lull_gain gain; /* over side 0 */
};

struct lull_contest {
	struct lull_vec sides; /* struct lull_side */
	u32 n_runs;	       /* rounds before sides are judged, at least LULL_DECIDE_MIN_RUNS */
	f64 fastest;	       /* run of side 0 in contests before, 0: none; rule 3 */
	bool is_short;	       /* there is no time for all that is left; may change at any time */
	struct lull_vec order; /* private: size_t, sides but 0 in the order of this round */
	u32 round;	       /* private: 0-based */
	size_t turn;	       /* private: within the round */
	u32 n_compared; /* sides that could have a false gain; more if others run elsewhere */
};

/* `n` sides, side 0 included. */
void lull_contest_init(struct lull_contest *c, size_t n, u32 n_runs);

/* Free it. */
void lull_contest_release(struct lull_contest *c);

/* The side that runs next, or -1: all is decided. */
int lull_contest_next(struct lull_contest *c);

/* This side ran: one value for each block of steps. */
void lull_contest_add(struct lull_contest *c, size_t side, const f64 *values, size_t n);

/* This side does not run again. */
void lull_contest_drop(struct lull_contest *c, size_t side);

/* Judge all sides by the runs that there are, such as at the end. */
void lull_contest_judge(struct lull_contest *c);

/* How many runs are left, if no side drops out and noise hides nothing. */
u32 lull_contest_left(const struct lull_contest *c);

/*
 * Compare two sides; `fastest` as of a contest, `alpha` is the chance of a false gain that
 * statistics have.
 */
struct lull_gain lull_gain_of(const struct lull_samples *before, const struct lull_samples *after,
			      f64 fastest, f64 alpha);

#endif
