/*
 * step_found - the steps of a program as model/rounds.h finds them.
 *
 * A step that the program marks goes from one mark to the next; one that was found goes from the
 * end of the work of earlier ones on the device to the end of its own. Its number is its index in
 * the loop, from 0.
 * Only processes with work on a device are considered, each on the device where it has most.
 *
 * Cost:  reads the work, the CUDA calls, ranges, operators and calls of the C library; 0.6 us for a
 *        kernel and its call.
 */
#ifndef LULL_MODEL_STEP_FOUND_H
#define LULL_MODEL_STEP_FOUND_H

#include "base/vec.h"
#include "model/chain.h"
#include "model/rounds.h"
#include "model/span.h"
#include "trace/reader.h"

/*
 * Replace in `steps` (struct lull_step, model/step.h; those of the table) the steps of each process
 * whose rounds are others, and end the last one with its work. Whether there were others.
 */
bool lull_steps_find(struct lull_vec *steps, struct lull_reader *r, struct lull_span window);

/* Add these rounds as steps, those that lie in `window`. */
void lull_steps_take(struct lull_vec *steps, const struct lull_rounds *rounds,
		     const struct lull_chain *c, struct lull_span window);

/*
 * When the last of the rounds ends on the host: with its last launch, if it took far longer than
 * the others until the program waited for what was left. There has to be a round.
 */
u64 lull_steps_last_end_ns(const struct lull_rounds *rounds, const struct lull_chain *c);

#endif
