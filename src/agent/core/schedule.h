/*
 * schedule - which steps of the program are recorded (--steps, lull_schedule()).
 *
 * Steps are counted from 0. The first skip_first are skipped. Then each round has `wait` steps in
 * which nothing happens, `warmup` steps in which CUPTI is already enabled, and `active` steps that
 * are recorded into one report; there are `repeat` rounds, 0 for no limit. CUPTI is enabled at
 * least one step before the recorded ones, so that no kernel is missed.
 *
 * The process that is first to start a recording decides: its steps are counted. Others continue
 * without a schedule.
 */
#ifndef LULL_AGENT_CORE_SCHEDULE_H
#define LULL_AGENT_CORE_SCHEDULE_H

#include "base/types.h"
#include "wire/wire.h"

struct lull_thread;

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

/* Write down that a step begins or ends; nothing happens if `t` is NULL. */
void lull_schedule_emit(struct lull_thread *t, u64 number, u32 flags);

/* Have sources ready ahead of time, or let them rest. */
void lull_schedule_arm(bool is_armed);

/* The same, and wait until they are ready; half a second at most. */
void lull_schedule_arm_and_wait(void);

/* Forget what was counted: another session begins in this process (late.c). */
void lull_schedule_reset(void);

#endif
