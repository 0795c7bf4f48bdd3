/*
 * timer - who uses SIGPROF: the agent's CPU samples or the program; part of source_timer.c.
 *
 * The program has priority. It sees SIG_DFL while the agent uses the signal. Once the program asks
 * for the signal, it owns it permanently and there are no more samples (issue timer_taken). To wait
 * for the signal takes nothing from us: what others send is told from what our timers send.
 */
#ifndef LULL_AGENT_CORE_TIMER_H
#define LULL_AGENT_CORE_TIMER_H

#include <signal.h>

#include "base/types.h"

/* True while SIGPROF is ours. */
bool lull_timer_is_on(void);

/* True if one of our signals may be pending: SIGPROF is ours, or was until the program asked. */
bool lull_timer_has_sent(void);

/* Whether a timer of ours sent this SIGPROF. */
bool lull_timer_is_ours(const siginfo_t *info);

/* Stop all timers and leave SIGPROF to the guest, whose call this is; keeps errno. */
void lull_timer_yield(void);

#endif
