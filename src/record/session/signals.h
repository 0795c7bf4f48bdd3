/*
 * signals - forward signals to the program.
 *
 * A batch system, a container or a script that starts a program under lull knows the process id of
 * lull, not the program's. So signals sent to lull are forwarded to the program, and to no other
 * process: what the program does with its children is its decision. What the program itself sends
 * to its parent, which is lull, is forwarded to the parent of lull. Signals that a terminal sends
 * reach the program directly, and so do those sent to a whole process group (witness.h). Signals
 * that were ignored when lull started stay ignored, for lull and for the program.
 */
#ifndef LULL_RECORD_SESSION_SIGNALS_H
#define LULL_RECORD_SESSION_SIGNALS_H

#include <signal.h>

#include "base/err.h"

struct lull_collector;

/* Block what we watch and open `signal_fd`; `inherited` is what was blocked before. */
int lull_signals_open(struct lull_collector *c, sigset_t *inherited, struct lull_err *err);

/* From now on Ctrl-Z stops us without the program, which has ended. */
void lull_signals_allow_stop(void);

/* Take all that came. */
void lull_signals_read(struct lull_collector *c);

#endif
