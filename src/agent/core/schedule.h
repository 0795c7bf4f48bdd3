/*
 * schedule - which steps of the program are recorded (--steps, lull_schedule()).
 *
 * Steps are counted from 0. The first skip_first are left out; then come rounds of `wait` steps in
 * which nothing happens, `warmup` steps in which CUPTI is switched on already, and `active` steps
 * that are recorded, each round in a report of its own; `repeat` rounds, 0 for no end. At least one
 * step ahead of the recorded ones CUPTI is on, so that no kernel is missed.
 *
 * The steps of the process that is first to begin a recording count; others go on as they are.
 */
#ifndef LULL_AGENT_CORE_SCHEDULE_H
#define LULL_AGENT_CORE_SCHEDULE_H

#include "base/types.h"
#include "wire/wire.h"

/*
 * A step begins, or the last one ends; flags are LULL_STEP_*. Steps of hooks are ignored once the
 * program has said one itself. On the thread that runs the loop.
 */
void lull_schedule_step(u64 number, u32 flags);

/*
 * The program's own schedule, from the next step on. False, and without effect, if the recording is
 * not the program's to control.
 */
bool lull_schedule_set(const struct lull_schedule *s);

/* lull_start() and lull_stop() of the program (--capture-range=lull). Start waits for CUPTI. */
void lull_schedule_program(bool is_start);

#endif
