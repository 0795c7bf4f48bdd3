/*
 * step - the steps of the program's loops, and what the devices did in them.
 *
 * Device work counts for the steps of the process that launched it: busy time in which any of the
 * process's devices had work, cut at the edges of the step; kernels and bytes by their start on the
 * device.
 *
 * Steps are those of the table `step`. lull_steps_init_any() uses them only if `lull why` does: if
 * the program marked none, or too few of them hold too little of the work, it finds others. A step
 * that nobody marked is a time window on the device, as in model/rounds.h: the host may have
 * launched it long before.
 */
#ifndef LULL_MODEL_STEP_H
#define LULL_MODEL_STEP_H

#include "base/types.h"
#include "base/vec.h"
#include "model/rounds.h"
#include "model/span.h"
#include "trace/reader.h"

struct lull_step {
	u64 start_ns;
	u64 dur_ns;
	struct lull_span
		host; /* of a step that was found: between two marks; else 0 (lull_step_host()) */
	u64 number;
	u32 lane;
	enum lull_rounds_source source; /* what marked it */
	u64 busy_ns;
	u64 n_launches; /* kernels and graphs */
	u64 size_bytes; /* copied and set */
};

struct lull_steps {
	struct lull_vec all; /* struct lull_step by lane, then start */
	bool has_work;	     /* the recording has work of devices */
	bool are_found;	     /* some are not of the table `step` */
};

/* When the host went through the step. */
static inline struct lull_span lull_step_host(const struct lull_step *step)
{
	return step->host.from_ns
		       ? step->host
		       : (struct lull_span){ step->start_ns,
					     lull_span_end_ns(step->start_ns, step->dur_ns) };
}

/* Collect the steps that lie in `window`. */
void lull_steps_init(struct lull_steps *s, struct lull_reader *r, struct lull_span window);

/* The same; where `lull why` finds others, those that model/step_found.h finds. */
void lull_steps_init_any(struct lull_steps *s, struct lull_reader *r, struct lull_span window);

/* Count what the devices did in steps that the caller put into `all`; sorts them. */
void lull_steps_measure(struct lull_steps *s, struct lull_reader *r);

/* The thread that counts most of them: a report of several ranks has several. 0: there are none. */
u32 lull_steps_main_lane(const struct lull_steps *s);

/* Free them. */
void lull_steps_release(struct lull_steps *s);

/* Whether names of ranges, operators or kernels show that the program trains a model. */
bool lull_trains(struct lull_reader *r);

#endif
