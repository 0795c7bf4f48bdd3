/*
 * stamps - have the kernel stamp what comes in from the network, while requests are recorded.
 *
 * It does for the whole machine while one socket wants it; that is ours, and nothing is ever sent
 * to it. A stamp takes a look at the clock, some 30 ns for each packet. Agents read the stamps of
 * the connections of a server (agent/calls/stamp.h).
 */
#ifndef LULL_RECORD_SESSION_STAMPS_H
#define LULL_RECORD_SESSION_STAMPS_H

/* A descriptor to close() in the end; -1 if that cannot be, which is no error: less is known. */
int lull_stamps_begin(void);

#endif
