/*
 * timer - who uses SIGPROF: the agent's CPU samples or the program; part of source_timer.c.
 *
 * The program has priority. It sees SIG_DFL while the agent uses the signal. Once the program asks
 * for the signal, it owns it permanently and there are no more samples (issue timer_taken).
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
