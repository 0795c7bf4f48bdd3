/*
 * pidns - processes in another PID namespace.
 *
 * In its own PID namespace (unshare -p, containers) a process has another process id than out here,
 * where that id may be another process. Its agent reports the namespace that its id belongs to.
 */
#ifndef LULL_RECORD_PROCESS_PIDNS_H
#define LULL_RECORD_PROCESS_PIDNS_H

#include "base/types.h"

/* What names our own namespace, 0 if /proc does not say. */
u64 lull_pidns_own(void);

/* Our number of the process that is `pid` in the namespace; 0 if there is none (any more). */
u32 lull_pidns_find(u64 pid_ns, u32 pid);

#endif
