/*
 * signals - what we are sent is meant for the program.
 *
 * Whoever starts a program under lull knows our process id, not the program's: a batch system, a
 * container, a script. What they send us is handed on to the program, and to nobody else: what it
 * does with its own processes is its business. Signals that a terminal sends reach the program
 * without us, and so do those for everybody here (witness.h). Those that were ignored when we began
 * stay so, for us and for the program.
 */
#ifndef LULL_RECORD_SESSION_SIGNALS_H
#define LULL_RECORD_SESSION_SIGNALS_H

#include <signal.h>

#include "base/err.h"

struct lull_collector;

/* Block what we watch and open `signal_fd`; `inherited` is what was blocked before. */
int lull_signals_open(struct lull_collector *c, sigset_t *inherited, struct lull_err *err);

/* Take all that came. */
void lull_signals_read(struct lull_collector *c);

#endif
