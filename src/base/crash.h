/*
 * crash - what the command prints when it crashes: where, and how to recover the recording. The
 * process still dies of the signal.
 */
#ifndef LULL_BASE_CRASH_H
#define LULL_BASE_CRASH_H

/* Print that when this process dies of SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT; called once. */
void lull_crash_watch(void);

#endif
