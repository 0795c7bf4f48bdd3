/*
 * crash - the last words of the command, should it ever die of a bug of its own: where, and what is
 * left of a recording. It still dies of the signal.
 */
#ifndef LULL_BASE_CRASH_H
#define LULL_BASE_CRASH_H

/* Speak when this process dies of SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT; called once. */
void lull_crash_watch(void);

#endif
