/*
 * window_steps - windows of a recording that is mostly off (--duty).
 *
 * The recorder says when it wants a window: it puts the number of the next one into
 * control->next_record. The first process that starts a step after that has its sources made ready
 * (CUPTI), and starts the window with its next step. It ends the window with a step, too, so that
 * all steps in it are whole. Steps outside of windows are written as well, a few bytes each: the
 * recorder counts and times them.
 *
 * Threads: the one that runs the loop.
 */
#ifndef LULL_AGENT_CORE_WINDOW_STEPS_H
#define LULL_AGENT_CORE_WINDOW_STEPS_H

#include "agent/core/agent.h"
#include "wire/wire.h"

/* Whether the recorder wants windows. */
static inline bool lull_window_steps_are_on(void)
{
	return atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed) &
	       LULL_WATCH_DUTY;
}

/* A step begins, or the last one ends; as lull_schedule_step(). */
void lull_window_steps_add(u64 number, u32 flags);

#endif
