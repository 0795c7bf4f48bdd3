/*
 * opportunity - what would make a busy device faster.
 *
 * A cause explains why a device does not compute. An opportunity is about the time in which it
 * does: the same work in less time. They are looked for where the device computes for at least half
 * of the step, whatever the first cause is, and kept if the replayed step is 5 % shorter.
 *
 * An opportunity is one file: look() says what was seen, apply() changes the step as the fix would.
 * The replay turns that into a gain, so that a fix of the device brings nothing where the host is
 * what the step waits for. Gains of several do not add up.
 *
 * To add one: copy opportunity_optimizer.c to opportunity_X.c, add OPPORTUNITY(X) to
 * opportunities.def, its numbers to thresholds.def, and two goldens (test/golden/why/:
 * opportunity-X and one that nearly is). `tools/gen-docs build/lull` updates lull-causes(7).
 */
#ifndef LULL_CAUSE_OPPORTUNITY_H
#define LULL_CAUSE_OPPORTUNITY_H

#include "base/types.h"
#include "base/vec.h"
#include "cause/readings.h"
#include "cause/replay/replay.h"
#include "cause/why.h"

/* The kernels of one launch shape in the steady steps. */
struct lull_shape {
	u64 ns;
	u64 n;
	u8 class; /* enum lull_kernel_class */
};

/* What all of them look at. */
struct lull_look {
	const struct lull_why *why;
	const struct lull_subject *subject;
	const struct lull_launch_row *launches;
	struct lull_shape *shapes; /* by launch id; 0 is no launch */
	size_t n_shapes;	   /* launch ids are below it */
	f64 n_steps;
	u32 n_sms;	  /* of the device, 0 if not known */
	u32 capability;	  /* of the device, 0 if not known */
	f64 memory_bytes; /* of the device, 0 if not known */
	struct lull_readings readings;
	u8 *marks; /* by launch id, for look() to tell apply() about */
};

struct lull_opportunity_kind {
	const char *id;	   /* for ever: scripts quote it */
	const char *title; /* a phrase */
	const char *why;   /* for lull-causes(7): mechanism, and where its numbers are from */
	const char *fix;
	const char *fix_torch; /* the same in a program that uses PyTorch; NULL: no other words */
	const char *assumes;   /* what the prediction takes for granted */
	const char *causes;    /* ids of those that say the same where they come first; NULL */
	const char *covers;    /* ids of opportunities that are part of it and bring less; NULL */

	bool is_ceiling; /* the prediction is the best that can come of it */

	/*
	 * Whether it is there: fill o->touched_ns (of each step) and o->text; o->fix and o->assumes
	 * hold the words above.
	 */
	bool (*look)(struct lull_look *l, struct lull_opportunity *o);

	/* Change the step as the fix would. */
	void (*apply)(const struct lull_look *l, struct lull_what_if *w);
};

enum lull_opportunity_ix {
#define OPPORTUNITY(name) LULL_OPPORTUNITY_IX_##name,
#include "cause/opportunities.def"
#undef OPPORTUNITY
	LULL_N_OPPORTUNITIES,
};

/* All of opportunities.def, in its order. */
extern const struct lull_opportunity_kind *const lull_opportunities[LULL_N_OPPORTUNITIES];

/*
 * Fill why->opportunities, the largest gain first, and why->utilization. After
 * lull_why_choose().
 */
void lull_why_opportunities(struct lull_why *why);

/* The factor for this scenario of a what-if: -1 best case, 0 expected, 1 worst case. */
static inline f64 lull_scenario_of(const struct lull_what_if *w, f64 good, f64 expected, f64 poor)
{
	return w->scenario < 0 ? good : w->scenario > 0 ? poor : expected;
}

/* The launch id of an op's kernel; 0 if it is none. */
static inline u32 lull_op_launch(const struct lull_what_if *w, u32 op)
{
	const struct lull_unit *unit = &w->replay->subject->units.at[w->ops[op].unit];

	return unit->kind == LULL_UNIT_KERNEL ? unit->what : 0;
}

#endif
