/*
 * wait - what a C library call waits for.
 */
#ifndef LULL_MODEL_WAIT_H
#define LULL_MODEL_WAIT_H

#include "base/types.h"

enum lull_wait {
	LULL_WAIT_LOCK, /* another thread: mutexes, conditions, semaphores, joins, locks of files */
	LULL_WAIT_IO,	/* files, sockets, pipes, and what polls them */
	LULL_WAIT_SLEEP, /* the clock */
	LULL_WAIT_OTHER, /* processes, signals, the loader, memory */
};

/* What the function of this name waits for. */
enum lull_wait lull_wait_of(const char *function);

#endif
