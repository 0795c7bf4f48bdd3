/*
 * position - where in its step a call is, to find the same place in other steps.
 *
 * A position is the call's name, the work it launches, and the 1-based index of such a call in its
 * step.
 */
#ifndef LULL_CAUSE_POSITION_H
#define LULL_CAUSE_POSITION_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/subject.h"

struct lull_position_launch {
	u32 name; /* of the call */
	u32 kind; /* 1-based, 0 for none */
};

struct lull_positions {
	const struct lull_subject *subject;
	const struct lull_launch_row *launches; /* private */
	struct lull_map kinds;			/* private */
	struct lull_position_launch *recent;	/* private: by launch, what was asked last */
	struct lull_vec counters;		/* private: how many of a kind in this step */
};

/* Begin with the first call. */
void lull_positions_init(struct lull_positions *p, const struct lull_subject *s);

/* Free it. */
void lull_positions_release(struct lull_positions *p);

/*
 * The position of a call of a step; asked for each one in the order of the chain. Those of two
 * walks over the same calls are equal.
 */
u64 lull_position_of(struct lull_positions *p, const struct lull_node *node);

#endif
