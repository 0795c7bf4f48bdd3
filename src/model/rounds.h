/*
 * rounds - the steps of a loop, as time windows on the device.
 *
 * On the host a step goes from one mark to the next. On the device it goes from the end of all
 * work of earlier steps to the end of its own work: otherwise steps would be too short if the host
 * runs ahead. Marks are, in this order: steps that the program marks, ranges named like steps,
 * steps that hooks found, the period of the launches, and the optimizer's update.
 *
 * Warm-up:        the first step, and the steps right after it that are far longer than the others,
 *                 are not steady.
 * Remainder:      work launched after the last step belongs to no step.
 */
#ifndef LULL_MODEL_ROUNDS_H
#define LULL_MODEL_ROUNDS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/chain.h"
#include "model/host.h"
#include "model/unit.h"
#include "trace/reader.h"

/* step.source */
#define LULL_STEP_SAID	0 /* by the program */
#define LULL_STEP_FOUND 1 /* by hooks of its framework */

enum lull_rounds_source {
	LULL_ROUNDS_NONE,
	LULL_ROUNDS_STEP,      /* the table `step` */
	LULL_ROUNDS_RANGE,     /* ranges named like steps */
	LULL_ROUNDS_OPTIMIZER, /* updates of the optimizer */
	LULL_ROUNDS_PERIOD,    /* found: nothing is marked */
	LULL_ROUNDS_HOOK,      /* the table `step`, by hooks of the framework */
};

struct lull_round {
	u64 mark_ns; /* begin on the host */
	u64 end_ns;  /* end on the device */
};

struct lull_rounds {
	struct lull_vec all; /* struct lull_round */
	u64 last_ns;	     /* end of the last one on the host */
	u64 first_ns;	     /* begin of the first one's window on the device */
	u32 first_steady;
	enum lull_rounds_source source;
	const char *name; /* of the ranges, or NULL; borrowed */
};

/*
 * Find the steps of `process` (`without` as in lull_host_init()), and set the round of nodes and
 * units.
 */
void lull_rounds_init(struct lull_rounds *s, struct lull_reader *r, u32 process,
		      struct lull_chain *c, struct lull_units *units, const struct lull_host *h,
		      u32 without);

/* Free them. */
void lull_rounds_release(struct lull_rounds *s);

/* Begin and end of a step's window on the device. */
static inline u64 lull_round_begin_ns(const struct lull_rounds *s, u32 round)
{
	return round ? ((const struct lull_round *)s->all.at)[round - 1].end_ns : s->first_ns;
}

static inline u64 lull_round_end_ns(const struct lull_rounds *s, u32 round)
{
	return ((const struct lull_round *)s->all.at)[round].end_ns;
}

/* Steps that count: all but the warm-up. */
static inline u32 lull_rounds_n_steady(const struct lull_rounds *s)
{
	return s->all.n > s->first_steady ? (u32)s->all.n - s->first_steady : 0;
}

#endif
