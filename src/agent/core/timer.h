/*
 * timer - who has SIGPROF: the agent's CPU samples or the guest; family of source_timer.c.
 *
 * The guest goes first. It sees SIG_DFL as long as the signal is ours, and once it asks for the
 * signal it gets it for good and there are no samples any more (issue timer_taken).
 */
#ifndef LULL_AGENT_CORE_TIMER_H
#define LULL_AGENT_CORE_TIMER_H

#include <signal.h>

#include "base/types.h"

/* True while SIGPROF is ours. */
bool lull_timer_is_on(void);

/* Stop all timers and leave SIGPROF to the guest, whose call this is; keeps errno. */
void lull_timer_yield(void);

#endif
