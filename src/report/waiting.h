/*
 * waiting - which thread waits for what another one launches for it.
 *
 * PyTorch runs the backward pass on threads of its own (pt_autograd_0, ...), while the thread that
 * called backward() waits. What these launch belongs to the ranges of the thread that waits: it is
 * the one inside torch:backward or torch:autograd.grad at that moment. In a process that has no
 * such ranges, since its hooks were off, it is taken to be the main thread.
 */
#ifndef LULL_REPORT_WAITING_H
#define LULL_REPORT_WAITING_H

#include "base/types.h"
#include "base/vec.h"
#include "model/nest.h"
#include "model/span.h"
#include "trace/reader.h"

struct lull_waiting {
	const struct lull_nest *nest;	   /* borrowed */
	const struct lull_lane_row *lanes; /* borrowed */
	size_t n_lanes;
	u8 *is_backward;		   /* by label */
	u8 *is_autograd;		   /* by lane */
	struct lull_vec lanes_of_backward; /* u32 */
	u32 *main_lane; /* by process: that of a process without such ranges, or 0 */
};

/* Learn who may wait; the nest stays. */
void lull_waiting_init(struct lull_waiting *w, struct lull_reader *r, const struct lull_nest *nest);

/* Free it. */
void lull_waiting_release(struct lull_waiting *w);

/* The thread whose ranges a call on `lane` at this time belongs to: `lane` itself for most. */
u32 lull_waiting_lane(const struct lull_waiting *w, u32 lane, struct lull_span span);

/* Whether this thread runs backward passes for others. */
bool lull_lane_is_autograd(struct lull_reader *r, u32 lane);

#endif
