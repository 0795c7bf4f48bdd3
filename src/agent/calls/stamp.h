/*
 * stamp - since when data wait in a TCP socket, by the time stamp that the kernel gave them.
 *
 * Linux stamps what comes in while somebody on the machine wants that: the recorder has a socket
 * that does (record/session/stamps.h). The stamp is read by looking at the first byte, which stays
 * there, with the option for it switched on meanwhile; a socket that has such options already is
 * left alone. Of pieces that came one after the other before anything was read, it is that of the
 * last: Linux joins them.
 *
 * Threads:    any.
 * Costs:      four system calls where data wait, three where none do. They keep errno.
 */
#ifndef LULL_AGENT_CALLS_STAMP_H
#define LULL_AGENT_CALLS_STAMP_H

#include <stdbool.h>

#include "base/types.h"

/* Others may hold descriptors, which a look at their bytes would copy. */
bool lull_stamp_is_tcp(int fd);

enum lull_stamp {
	LULL_STAMP_UNKNOWN,   /* there may be data or not */
	LULL_STAMP_EMPTY,     /* none: who reads waits for them */
	LULL_STAMP_UNSTAMPED, /* there are, but the kernel does not say since when */
	LULL_STAMP_WAITS,     /* there are, and since when */
};

/* `came`: as lull_time() gives it. */
enum lull_stamp lull_stamp_of(int fd, u64 *came);

#endif
